// SPDX-License-Identifier: GPL-2.0

//! Writers that are paced, and a device: the controller and what is pending, as the kernel has them,
//! in a simulation of time.

use dontcache_host::writeback::{
    control::{
        first,
        Control,
        LATE,
        LEAST, //
    },
    pending::{
        Next,
        Pending,
        Range, //
    },
    room::{
        Admits,
        Advice,
        Footprint,
        Patience,
        Turns, //
    },
    units::{
        Instant,
        Micros,
        Pages, //
    },
};
use proptest::prelude::*;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
};

const SHIFT: u32 = 12;
/// As with HZ=1000.
const JIFFY: usize = 1000;
const GATHER: usize = 20;
const TAIL: usize = 100;
/// In jiffies: how often the first of those that wait looks, and how long it is patient.
const LOOK: usize = 10;
const TENTH: usize = 100;
/// Who is granted a turn and does not run.
const PROMISED: usize = 3 * LOOK;

#[derive(Clone, Copy, Debug)]
struct Device {
    depth: usize,
    latency: usize,
    request: usize,
}

impl Device {
    /// Pages in a second.
    fn best(&self) -> usize {
        self.depth * self.request * 1_000_000 / self.latency
    }
}

#[derive(Clone, Copy, Debug)]
struct Load {
    /// Bytes of each write.
    size: usize,
    /// Each write goes on where the last ended, or anywhere.
    streams: bool,
    /// As io_uring's: submits nothing itself.
    nowait: bool,
    /// How long it does something else after each write.
    rests: usize,
}

/// Of small writes, as fast as it may.
const STREAM: Load = Load {
    size: 4096,
    streams: true,
    nowait: false,
    rests: 0,
};

/// Each of which is a good request.
const LARGE_WRITES: Load = Load {
    size: 1 << 20,
    ..STREAM
};

#[derive(Default)]
struct File {
    pending: Pending,
    dirty: BTreeSet<usize>,
    at: usize,
    writes: usize,
    /// Pages that it may write and has not run for since.
    owed: usize,
    round: usize,
    bytes: usize,
    last: usize,
    longest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Write(usize),
    /// A writer was granted its turn.
    Run(usize),
    Done(usize),
    /// As that, of who does not wait for a turn and writes on.
    Others(usize),
    Soon,
    Later,
    /// The first of those that wait looks.
    Look,
}

struct World {
    device: Device,
    loads: Vec<Load>,
    files: Vec<File>,
    control: Control,
    bound: Pages,
    span: Micros,
    now: usize,
    events: BinaryHeap<Reverse<(usize, Event)>>,
    queue: VecDeque<Event>,
    in_flight: usize,
    footprint: usize,
    peak: usize,
    peak_target: usize,
    written: usize,
    /// What others have left dirty, and no worker has.
    lazy: usize,
    gathered: bool,
    started: usize,
    /// How often a worker was called.
    runs: usize,
    waiting: VecDeque<(usize, usize)>,
    passed: usize,
    turns: Turns,
    /// That of the first, and whether it is to look.
    patience: Patience,
    looks: bool,
    /// How long it takes until who is let go runs, and what is ahead of the device for that.
    late: usize,
    ahead: usize,
    /// From when to when the device does nothing.
    stall: (usize, usize),
    listed: BTreeSet<usize>,
    /// Whether the work item is queued, and the delayed one.
    soon: bool,
    later: bool,
    seed: u64,
}

impl World {
    fn new(device: Device, loads: Vec<Load>, span: usize) -> World {
        let files = loads.iter().map(|_| File::default()).collect();
        let mut world = World {
            device,
            loads,
            files,
            control: Control::default(),
            bound: first(Pages(device.depth * device.request)),
            span: Micros::from_millis(span),
            now: 1,
            events: BinaryHeap::new(),
            queue: VecDeque::new(),
            in_flight: 0,
            footprint: 0,
            peak: 0,
            peak_target: 0,
            written: 0,
            lazy: 0,
            gathered: false,
            started: 0,
            runs: 0,
            waiting: VecDeque::new(),
            passed: 0,
            turns: Turns::default(),
            patience: Patience::new(TENTH),
            looks: false,
            late: 1,
            ahead: 0,
            stall: (0, 0),
            listed: BTreeSet::new(),
            soon: false,
            later: false,
            seed: 1,
        };

        for writer in 0..world.loads.len() {
            world.at(writer, Event::Write(writer));
        }
        world
    }

    fn at(&mut self, after: usize, event: Event) {
        self.events.push(Reverse((self.now + after, event)));
    }

    fn random(&mut self, below: usize) -> usize {
        self.seed = self
            .seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.seed >> 33) as usize % below
    }

    /// What a writer finds under writeback at most when it is to submit.
    fn queue(&self, writer: usize) -> usize {
        let load = self.loads[writer];
        let good = Pages(self.device.request.clamp(32, 256));

        if self.files[writer]
            .pending
            .submits(Pages(load.size.div_ceil(1 << SHIFT)), good)
        {
            (self.device.depth * self.device.request).max(256) + self.ahead
        } else {
            usize::MAX
        }
    }

    fn waits_for_queue(&self, writer: usize) -> bool {
        self.queue(writer) < self.target().saturating_add(self.ahead)
    }

    fn target(&self) -> usize {
        self.bound.0
    }

    fn run(&mut self, until: usize) {
        while let Some(Reverse((at, event))) = self.events.pop() {
            if at > until {
                self.events.push(Reverse((at, event)));
                break;
            }
            self.now = at;
            match event {
                Event::Write(writer) => self.write(writer),
                Event::Run(writer) => {
                    // As the end of `Wb::wait()`.
                    if self.waits_for_queue(writer) {
                        let requests = (Micros(self.late) > LATE).then_some(self.in_flight);

                        self.ahead = self.control.let_go(requests, Pages(256), self.bound).0;
                    }

                    let file = &mut self.files[writer];

                    self.turns.took(std::mem::take(&mut file.owed), file.round);
                    self.at(self.loads[writer].rests, Event::Write(writer));
                }
                Event::Done(pages) => self.done(pages),
                Event::Others(pages) => {
                    self.done(pages);
                    self.others(pages);
                }
                Event::Soon => {
                    // As `Wb::write()`.
                    let gathered = std::mem::take(&mut self.gathered);
                    let before = self.started;

                    self.soon = false;
                    self.runs += 1;
                    self.worker(0);
                    if gathered && self.started - before < self.target() / 4 {
                        self.gathered = true;
                    }
                }
                Event::Later => {
                    self.later = false;
                    self.gathered = false;
                    self.worker(GATHER);
                }
                Event::Look => {
                    self.looks = false;
                    self.look();
                }
            }
            self.peak_target = self.peak_target.max(self.target());
        }
    }

    /// Of what the device can write, in per cent, what it writes between two times.
    fn busy(&mut self, from: usize, until: usize) -> usize {
        self.run(from);

        let before = self.written;

        self.run(until);
        (self.written - before) * 1_000_000 / (until - from) * 100 / self.device.best()
    }

    fn write(&mut self, writer: usize) {
        let load = self.loads[writer];
        let anywhere = self.random(1 << 20) << SHIFT;
        let file = &mut self.files[writer];
        let first = if load.streams { file.at } else { anywhere };
        let end = first + load.size;

        if file.writes > 0 {
            file.longest = file.longest.max(self.now - file.last);
        }
        file.at = end;
        file.last = self.now;
        file.writes += 1;
        file.bytes += load.size;
        for page in first >> SHIFT..=(end - 1) >> SHIFT {
            if file.dirty.insert(page) {
                self.footprint += 1;
            }
        }
        self.peak = self.peak.max(self.footprint);

        let good = Pages(self.device.request.clamp(32, 256));

        match file
            .pending
            .wrote(first, end, self.now / JIFFY, good, load.nowait, SHIFT)
        {
            Next::Write(range) => {
                self.submit(writer, range);
                if !self.files[writer].pending.is_empty() && self.listed.insert(writer) {
                    self.later(GATHER);
                }
            }
            Next::Worker => {
                self.listed.insert(writer);
                self.soon();
            }
            Next::Gather => {
                if self.listed.insert(writer) {
                    self.later(GATHER);
                }
            }
        }

        if self.all().is_gathered(self.target()) && !std::mem::replace(&mut self.gathered, true) {
            self.soon();
        }

        let file = &mut self.files[writer];

        let touched = Pages(load.size.div_ceil(1 << SHIFT));
        let pages = file.pending.turn(touched, good).0;
        let credit = file.pending.spend(touched, self.now / JIFFY, PROMISED);

        let queue = self.queue(writer);
        let room = self.all().has_room(pages, self.target()) && self.all().is_queued(queue);

        if credit || self.waiting.is_empty() && room {
            self.at(1 + load.rests + (load.size >> SHIFT), Event::Write(writer));
        } else {
            if self.waits_for_queue(writer) {
                self.control.waits(self.in_flight);
            }
            self.control.held();
            self.waiting.push_back((writer, pages));
            self.grant();
            self.look_later();
        }
    }

    fn soon(&mut self) {
        if !std::mem::replace(&mut self.soon, true) {
            self.at(1, Event::Soon);
        }
    }

    fn later(&mut self, jiffies: usize) {
        if !std::mem::replace(&mut self.later, true) {
            self.at(jiffies * JIFFY, Event::Later);
        }
    }

    fn all(&self) -> Footprint {
        let dirty: usize = self.files.iter().map(|file| file.dirty.len()).sum();

        Footprint {
            all: self.footprint + self.lazy,
            writeback: self.footprint - dirty,
        }
    }

    fn submit(&mut self, writer: usize, range: Range) {
        let file = &mut self.files[writer];
        let pages: Vec<usize> = file.dirty.range(range.first..range.end).copied().collect();
        let mut next = None;
        let mut request = 0;

        if self.in_flight == 0 && !pages.is_empty() {
            self.control.started(Instant(self.now), true);
        }
        self.started += pages.len();
        for page in pages {
            file.dirty.remove(&page);
            if request > 0 && (next != Some(page) || request == self.device.request) {
                self.queue.push_back(Event::Done(request));
                request = 0;
            }
            request += 1;
            next = Some(page + 1);
        }
        if request > 0 {
            self.queue.push_back(Event::Done(request));
        }
        self.dispatch();
    }

    fn dispatch(&mut self) {
        while self.in_flight < self.device.depth {
            let Some(request) = self.queue.pop_front() else {
                break;
            };

            self.in_flight += 1;
            let stalls = self.stall.1.saturating_sub(self.now);
            let stalls = if self.now < self.stall.0 { 0 } else { stalls };
            self.at(self.device.latency + stalls, request);
        }
    }

    /// As with `O_DSYNC`.
    fn others(&mut self, pages: usize) {
        self.footprint += pages;
        self.queue.push_back(Event::Others(pages));
        self.dispatch();
    }

    fn done(&mut self, pages: usize) {
        self.in_flight -= 1;
        self.footprint -= pages;
        self.written += pages;
        if !self.waiting.is_empty() {
            self.patience.written(pages);
        }
        // As `to_be_told()`.
        if !self.waiting.is_empty() || self.control.measures() {
            self.control.written(Instant(self.now), Pages(pages));
            self.bound = self.control.follow(
                self.bound,
                Pages(pages),
                self.span,
                Pages(self.device.depth * self.device.request),
            );
        }
        self.dispatch();
        self.grant();
    }

    fn worker(&mut self, gather: usize) {
        for writer in std::mem::take(&mut self.listed) {
            let now = self.now / JIFFY;

            if let Some(range) = self.files[writer]
                .pending
                .take(now, gather, GATHER, TAIL, SHIFT)
            {
                self.submit(writer, range);
            }
            if !self.files[writer].pending.is_empty() && self.listed.insert(writer) {
                self.later(GATHER);
            }
        }
    }

    /// As `Wb::grant()`: to those who came first, as far as there is room for what each may write then.
    fn grant(&mut self) {
        let footprint = self.all();

        self.turns.looks(self.now / JIFFY, PROMISED);
        let mut passed = 0;

        while let Some(&(writer, pages)) = self.waiting.get(passed) {
            match self
                .turns
                .admits(footprint, pages, self.target(), self.queue(writer))
            {
                Admits::It if passed == 0 => {
                    self.grant_first();
                    self.patience.served(pages);
                    self.passed = 0;
                }
                Admits::It if self.passed < self.waiting[0].1.min(self.target() / 2) => {
                    self.passed += pages;

                    let it = self.waiting.remove(passed);

                    self.waiting.extend(it);
                    self.waiting.rotate_right(1);
                    self.grant_first();
                    self.patience.let_go(pages);
                }
                Admits::Others => passed += 1,
                Admits::It | Admits::Nobody => break,
            }
        }
    }

    fn grant_first(&mut self) {
        let Some((writer, pages)) = self.waiting.pop_front() else {
            return;
        };
        let file = &mut self.files[writer];

        file.round = self.turns.granted(pages, self.now / JIFFY);
        file.pending.grant(Pages(pages), self.now / JIFFY);
        file.owed = pages;
        self.at(self.late, Event::Run(writer));
    }

    /// As `Waiters::grant_some()`.
    fn grant_some(&mut self, most: usize) {
        let mut pages = 0;

        while let Some(&(_, next)) = self.waiting.front() {
            if pages > 0 && pages + next > most {
                break;
            }
            pages += next;
            self.grant_first();
        }
        self.patience.shared(pages);
    }

    /// As `Waiters::share()`.
    fn share(&mut self, most: usize) {
        let mut left = most;
        let mut stay: VecDeque<(usize, usize)> = VecDeque::new();

        while let Some(&(_, pages)) = self.waiting.front() {
            let beyond = |&(_, first): &(usize, usize)| self.passed.checked_sub(first);
            let fits = match stay.front().and_then(beyond) {
                Some(beyond) => pages <= left.saturating_sub(beyond) / 2,
                None => pages <= left,
            };

            if !fits {
                stay.extend(self.waiting.pop_front());
                continue;
            }
            left -= pages;
            self.passed = if stay.is_empty() {
                0
            } else {
                self.passed + pages
            };
            self.grant_first();
        }
        stay.append(&mut self.waiting);
        self.waiting = stay;
        self.patience.shared(most - left);
    }

    fn look_later(&mut self) {
        if !self.waiting.is_empty() && !std::mem::replace(&mut self.looks, true) {
            self.at(LOOK * JIFFY, Event::Look);
        }
    }

    /// As the loop of `Wb::wait()`, for the first.
    fn look(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let footprint = self.all();

        match self.patience.found(footprint, self.now / JIFFY) {
            Advice::Despair { dirty, idle } => {
                self.turns.despaired(dirty, self.now / JIFFY);
                self.grant_some(if idle { usize::MAX } else { self.target() / 2 });
            }
            Advice::Share(pages) => self.share(pages),
            Advice::Kick => {
                self.soon();
                self.grant();
            }
            Advice::Wait => self.grant(),
        }
        self.look_later();
    }
}

fn device() -> impl Strategy<Value = Device> {
    (
        1usize..65,
        50usize..20_000,
        prop_oneof![Just(32usize), Just(128), Just(256)],
    )
        .prop_map(|(depth, latency, request)| Device {
            depth,
            latency,
            request,
        })
}

fn load() -> impl Strategy<Value = Load> {
    (
        prop_oneof![
            Just(512usize),
            Just(4096),
            Just(65536),
            Just(1 << 20),
            1usize..300_000
        ],
        any::<bool>(),
        any::<bool>(),
        prop_oneof![3 => Just(0usize), 1 => 0usize..3000],
    )
        .prop_map(|(size, streams, nowait, rests)| Load {
            size,
            streams,
            nowait,
            rests,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The bound is passed by one write or request of each writer, and nobody waits for ever.
    #[test]
    fn footprint_is_bounded(device in device(), loads in proptest::collection::vec(load(), 1..9)) {
        let mut world = World::new(device, loads.clone(), 20);
        let excess: usize = loads
            .iter()
            .map(|load| ((load.size >> SHIFT) + 2).max(device.request.clamp(32, 256)))
            .sum();

        world.run(1_000_000);
        // It may have been lowered under what there was.
        prop_assert!(world.peak <= world.peak_target * 3 / 2 + excess, "{} {}", world.peak, world.peak_target);
        // Who comes first waits for what there is, and for as much that passes it: each page may be
        // a request.
        world.run(1_000_000 + 2 * world.peak_target * device.latency / device.depth);
        for file in &world.files {
            prop_assert!(file.writes > 1);
        }
    }

    /// What was dirtied is on the device soon after the last write.
    #[test]
    fn nothing_stays(device in device(), loads in proptest::collection::vec(load(), 1..9)) {
        let mut world = World::new(device, loads, 20);

        world.run(300_000);
        // The writers end.
        let events = std::mem::take(&mut world.events);
        world.events = events.into_iter().filter(|Reverse((_, event))| !matches!(event, Event::Write(_) | Event::Run(_))).collect();
        world.waiting.clear();
        let drain = world.footprint * 1_000_000 * device.request / device.best() + 300_000;
        world.run(300_000 + drain);
        prop_assert_eq!(world.footprint, 0);
    }

    /// Streams keep any device busy, and none is starved. Here requests are not merged, and all that
    /// happens is in step: a kernel does better.
    #[test]
    fn streams_keep_the_device_busy(
        device in device(),
        writers in 1usize..9,
        size in prop_oneof![Just(4096usize), Just(65536), Just(1 << 20)],
    ) {
        // A device that is faster than its writers has nothing to be kept busy by. And what the
        // writers gather is not most of the least bound.
        let device = Device {
            latency: device.latency.max(2 * device.depth * device.request),
            ..device
        };
        let writers = writers.min(LEAST.0 / 2 / device.request);
        let load = Load {
            size,
            streams: true,
            nowait: false,
            rests: 0,
        };
        let mut world = World::new(device, vec![load; writers], 20);

        world.run(2_000_000);
        let (before, bytes): (usize, Vec<usize>) = (world.written, world.files.iter().map(|file| file.bytes).collect());
        world.run(4_000_000);
        let rate = (world.written - before) / 2;
        prop_assert!(rate * 100 >= device.best() * 75, "{} of {}, target {}", rate, device.best(), world.target());

        let shares: Vec<usize> = world.files.iter().zip(bytes).map(|(file, before)| file.bytes - before).collect();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        prop_assert!(*most <= *least * 4 + 8 * size, "{:?}", shares);
    }
}

/// However long the queue is, and however long each waits in it.
#[test]
fn many_writers_of_a_slow_device_are_bounded() {
    let device = Device {
        depth: 1,
        latency: 125_000,
        request: 32,
    };
    let mut world = World::new(device, vec![STREAM; 64], 20);

    world.run(60_000_000);
    let excess = world.loads.len() * device.request;
    assert!(
        world.peak <= world.peak_target * 3 / 2 + excess,
        "{}",
        world.peak
    );
    let least = world.files.iter().map(|file| file.bytes).min();
    assert!(least > Some(60 * 256 * 4096 / 64 / 2), "{least:?}");
}

/// Who writes little goes on beside who writes much at once, and that one does not wait for ever.
#[test]
fn a_large_write_holds_nobody_up_for_long() {
    let device = Device {
        depth: 4,
        latency: 4000,
        request: 32,
    };
    let large = Load {
        size: 256 << 20,
        ..STREAM
    };
    let small = Load {
        streams: false,
        ..STREAM
    };
    let mut world = World::new(device, vec![large, small], 20);

    world.run(30_000_000);
    assert!(
        world.files[1].longest < 300_000,
        "{}",
        world.files[1].longest
    );
    assert!(world.files[0].writes > 2, "{}", world.files[0].writes);
    // The least that is left when the large one comes again.
    assert!(world.peak < 2 * (large.size >> SHIFT), "{}", world.peak);
}

/// Others that write with `O_DSYNC` wait for their own pages, and for no turn: as much as they have
/// under writeback is above the bound for ever.
#[test]
fn who_waits_has_half_beside_those_that_do_not() {
    let device = Device {
        depth: 8,
        latency: 8000,
        request: 32,
    };
    for size in [1 << 20, 4 << 20] {
        let mut world = World::new(device, vec![Load { size, ..STREAM }], 20);

        for _ in 0..64 {
            world.others(device.request);
        }
        world.run(2_000_000);
        let before = world.files[0].bytes;
        world.run(12_000_000);
        let rate = (world.files[0].bytes - before) / 10 >> SHIFT;
        assert!(
            rate * 100 >= device.best() * 20,
            "{rate} of {}",
            device.best()
        );
    }
}

/// A device that is slow comes back under its bound when it has done nothing for a while.
#[test]
fn a_stall_is_got_over() {
    for (latency, request, size) in [
        (125_000, 32, 4096),
        (125_000, 32, 1 << 20),
        (40_000, 4, 16384),
    ] {
        let device = Device {
            depth: 1,
            latency,
            request,
        };
        let load = Load { size, ..STREAM };
        let mut world = World::new(device, vec![load; 8], 20);

        world.stall = (20_000_000, 21_200_000);
        world.run(19_000_000);
        let excess = 8 * (size >> SHIFT).max(32);
        assert!(world.footprint <= world.target() * 3 / 2 + excess);
        world.run(60_000_000);
        assert!(
            world.footprint <= world.target() * 3 / 2 + excess,
            "{size}: {} of {}",
            world.footprint,
            world.target()
        );
    }
}

/// Small writes beside a stream of the same file, which never ends.
#[test]
fn nothing_waits_for_the_end_of_a_stream() {
    let mut pending = Pending::default();
    let good = Pages(32);
    let mut at = 1 << 30;
    let mut taken = None;

    pending.wrote(0, 4096, 0, good, false, SHIFT);
    for now in 1..100 {
        if now % 10 == 0 {
            pending.wrote(at, at + (128 << 10), now, good, false, SHIFT);
            at += 128 << 10;
        }
        if now % GATHER == 0 {
            let range = pending.take(now, GATHER, GATHER, TAIL, SHIFT);
            taken = taken.or(range.filter(|range| range.first == 0).and(Some(now)));
        }
    }
    assert!(taken <= Some(2 * GATHER) && taken.is_some(), "{taken:?}");
}

/// Who is let go runs later than the device has written what is ahead of it.
#[test]
fn a_device_is_kept_busy_by_writers_that_have_no_cpu() {
    let device = Device {
        depth: 8,
        latency: 2000,
        request: 32,
    };
    let mut world = World::new(device, vec![LARGE_WRITES; 4], 20);

    world.late = 3000;
    let share = world.busy(1_000_000, 3_000_000);
    assert!(share >= 90, "{share} %");
    assert!(world.ahead <= world.target());
}

/// What is ahead of a device is not for ever, however much it was.
#[test]
fn who_has_a_cpu_again_waits_for_the_queue() {
    let device = Device {
        depth: 2,
        latency: 2000,
        request: 32,
    };
    let mut world = World::new(device, vec![LARGE_WRITES; 4], 20);

    world.ahead = world.target();
    for _ in 0..64 {
        world.control.waits(64);
        world.control.let_go(Some(0), Pages(256), world.bound);
    }
    world.run(10_000_000);
    assert!(world.ahead < 256, "{} of {}", world.ahead, world.target());
}

/// A stream has its turns beside many that write little, and others that wait for no turn.
#[test]
fn who_is_first_has_a_share_beside_small_writes() {
    // A stream, and one whose writes are more than half of the bound.
    for (latency, request, size, least) in [
        (8000, 256, 65536, 40),
        (10_000, 32, 4 << 20, 8),
        (10_000, 32, 16 << 20, 1),
    ] {
        let device = Device {
            depth: 8,
            latency,
            request,
        };
        let scattered = Load {
            streams: false,
            ..STREAM
        };
        let mut loads = vec![scattered; 40];

        loads.push(Load { size, ..STREAM });

        let mut world = World::new(device, loads, 20);

        for _ in 0..64 {
            world.others(32);
        }
        world.run(2_000_000);
        let before = world.files[40].bytes;
        world.run(40_000_000);
        let turns = (world.files[40].bytes - before) / size.max(request << SHIFT);
        assert!(turns >= least, "{size}: {turns}");
        // Nor do those wait for it.
        let longest = world.files[..40].iter().map(|file| file.longest).max();
        assert!(longest < Some(1_500_000), "{size}: {longest:?}");
    }
}

/// What others have dirty is not what gathers, however much it is.
#[test]
fn what_no_worker_has_calls_none_for_each_write() {
    let device = Device {
        depth: 8,
        latency: 100,
        request: 256,
    };
    let load = Load {
        rests: 2000,
        ..STREAM
    };
    let mut world = World::new(device, vec![load; 2], 20);

    world.lazy = world.target() / 2 + 52;
    world.run(10_000_000);
    assert!(world.runs <= 10_000 / 20 + 1, "{}", world.runs);
    assert!(world.written >= 9000, "{}", world.written);
}

#[test]
fn a_slow_device_has_the_least_bound() {
    let device = Device {
        depth: 1,
        latency: 2000,
        request: 32,
    };
    let mut world = World::new(device, vec![STREAM], 20);

    world.run(1_000_000);
    assert_eq!(world.target(), LEAST.0);
}

/// What is written while no writer waits is part of a window all the same.
#[test]
fn a_deep_device_is_kept_busy() {
    let device = Device {
        depth: 32,
        latency: 16384,
        request: 256,
    };
    let mut world = World::new(device, vec![STREAM; 2], 20);

    assert!(world.busy(2_000_000, 4_000_000) >= 75);
}
