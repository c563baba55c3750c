// SPDX-License-Identifier: GPL-2.0

//! Who may write on: what there is room for, and what is done when there is none for long.
//!
//! Pure. Numbers of pages and of jiffies.

/// Uncached pages of a `bdi_writeback`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Footprint {
    /// Dirty or under writeback.
    pub all: usize,
    /// Under writeback.
    pub writeback: usize,
}

/// What a bound has room for at once: a large write does not wait until the device is idle.
fn fair(pages: usize, bound: usize) -> usize {
    pages.min(bound / 2).max(1)
}

impl Footprint {
    /// Those that are dirty.
    pub fn dirty(self) -> usize {
        self.all.saturating_sub(self.writeback)
    }

    /// With `pages` more, which do not gather.
    pub fn with(self, pages: usize) -> Footprint {
        Footprint {
            all: self.all.saturating_add(pages),
            writeback: self.writeback.saturating_add(pages),
        }
    }

    /// Without `pages` of what is dirty.
    pub fn without(self, pages: usize) -> Footprint {
        Footprint {
            all: self.all - pages.min(self.dirty()),
            ..self
        }
    }

    /// What there is room for. What gathers is no load of the device's, up to half of the bound.
    fn room(self, bound: usize) -> usize {
        (bound.saturating_add(self.dirty().min(bound / 2))).saturating_sub(self.all)
    }

    /// Whether `pages` more are within the bound, whatever gathers. For who comes back soon.
    pub fn fits(self, pages: usize, bound: usize) -> bool {
        self.all == 0 || self.with(fair(pages, bound)).all <= bound
    }

    /// Whether there is room for `pages`.
    pub fn has_room(self, pages: usize, bound: usize) -> bool {
        self.all == 0 || self.room(bound) >= fair(pages, bound)
    }

    /// Whether the queue of the device, which takes `queue` pages, is not more than full. Who
    /// submits more waits for a request, and those are not given to who came first.
    pub fn is_queued(self, queue: usize) -> bool {
        self.writeback <= queue
    }

    /// Whether a worker is to write what gathers: it is much, and the device has little to do.
    pub fn is_gathered(self, bound: usize) -> bool {
        self.dirty() >= bound / 2 && self.writeback < bound / 2
    }
}

/// What somebody saw without the lock under which turns are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// That there was.
    pub footprint: Footprint,
    /// What [`Turns::taken`] was before.
    pub taken: usize,
}

/// Whom there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// The one that was asked for.
    It,
    /// Those that do not submit what they write: the queue of the device is full.
    Others,
    /// Those behind it wait as well.
    Nobody,
}

/// What was promised to writers that waited, and what they need not wait for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// What writers took of their promises, ever.
    taken: usize,
    /// To those that have not run since: in this round, since `promised`, and in the one before it.
    owed: usize,
    older: usize,
    round: usize,
    promised: usize,
    /// When somebody looked last, and when for others too.
    looked: usize,
    served: usize,
    /// What was dirty all the time when nothing became less for long, and when that was: nobody can
    /// write it.
    stuck: usize,
    despaired: usize,
}

impl Turns {
    /// Somebody looks. Who has not run for `ticks` jiffies since it might, or up to twice that, has
    /// something else to do, or no CPU: others do not wait for that. And what could not be written
    /// is to show again, after a few hundred times that, that it cannot: it may be others' since.
    pub fn looks(&mut self, now: usize, ticks: usize) {
        if self.all_owed() > 0 && now.wrapping_sub(self.promised) >= ticks {
            // Not what was promised just now: others are promised something all the time.
            self.older = core::mem::take(&mut self.owed);
            self.promised = now;
            self.round = self.round.wrapping_add(1);
        }
        if !lasts(self.despaired, now, ticks) {
            self.stuck = 0;
        }
    }

    /// There is as much as long ago, and `dirty` of it was so all the time.
    pub fn despaired(&mut self, dirty: usize, now: usize) {
        self.stuck = dirty;
        self.despaired = now;
    }

    /// No more than that is dirty.
    pub fn saw(&mut self, dirty: usize) {
        self.stuck = self.stuck.min(dirty);
    }

    /// What is dirty and is not waited for.
    pub fn stuck(&self) -> usize {
        self.stuck
    }

    /// Whether there is room for the `pages` of the next, beside what others were promised, and in
    /// the device's `queue`.
    pub fn admits(&self, footprint: Footprint, pages: usize, bound: usize, queue: usize) -> Admits {
        let all = footprint.without(self.stuck).with(self.all_owed());

        if !all.has_room(pages, bound) {
            Admits::Nobody
        } else if !all.is_queued(queue) {
            Admits::Others
        } else {
            Admits::It
        }
    }

    /// A writer may write `pages`, when it runs. Returns what it has to tell then.
    pub fn granted(&mut self, pages: usize, now: usize) -> usize {
        if self.all_owed() == 0 {
            self.promised = now;
        }
        self.owed = self.owed.saturating_add(pages);
        self.round
    }

    fn all_owed(&self) -> usize {
        self.owed.saturating_add(self.older)
    }

    /// What writers took of their promises, in pages: the difference of two of them counts.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// What there is, at least. Who took a turn since may not have been seen, and the room that it
    /// has would be given to another as well.
    pub fn now(&self, seen: Seen) -> Footprint {
        seen.footprint.with(self.taken.wrapping_sub(seen.taken))
    }

    /// It runs. If its promise was given up, what is owed now is owed to others.
    pub fn took(&mut self, pages: usize, round: usize) {
        self.taken = self.taken.wrapping_add(pages);

        let owed = match self.round.wrapping_sub(round) {
            0 => &mut self.owed,
            1 => &mut self.older,
            _ => return,
        };

        *owed = owed.saturating_sub(pages);
    }

    /// Whether nobody has looked for `ticks` jiffies: to add up what all CPUs have counted takes
    /// time.
    pub fn may_look(&mut self, now: usize, ticks: usize) -> bool {
        once(&mut self.looked, now, ticks)
    }

    /// Whether nobody has looked for whom there is room for `ticks` jiffies. Who looks at the same
    /// time as another sees nothing of what that one is about to write.
    pub fn may_serve(&mut self, now: usize, ticks: usize) -> bool {
        once(&mut self.served, now, ticks)
    }
}

/// Whether what nobody could write at `despaired` is still not waited for: for a few hundred times
/// `ticks` jiffies.
pub fn lasts(despaired: usize, now: usize, ticks: usize) -> bool {
    now.wrapping_sub(despaired) < ticks.saturating_mul(300)
}

/// Whether `last` was `ticks` ago or more; then it is now.
fn once(last: &mut usize, now: usize, ticks: usize) -> bool {
    let may = now.wrapping_sub(*last) >= ticks;

    if may {
        *last = now;
    }
    may
}

/// What the first of those that wait does when it has looked in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Look again.
    Wait,
    /// Ask the flusher: what is dirty and on no list is known to it. Its write failed, or it was
    /// dirtied under writeback, or by another policy.
    Kick,
    /// Let those go on that fit into so many pages: the device writes what is others'.
    Share(usize),
    /// What they wait for cannot be written, or others write who do not wait for their turn.
    Despair {
        /// What was dirty all the time.
        dirty: usize,
        /// Nothing was under writeback.
        idle: bool,
    },
}

/// How long nobody had room of those that wait, and how long there was no progress.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    tenth: usize,
    /// When somebody looked last, and for the first time.
    seen: usize,
    first: Option<usize>,
    /// What was written since, less twice what has had a share.
    written: usize,
    /// How much there was the last time, and what was said to be written since.
    all: usize,
    told: usize,
    /// The least that there was, and what those that were let go are to write since.
    least: usize,
    coming: usize,
    /// Since when there is no progress, what was dirty all that time, and the most that was under
    /// writeback in it.
    since: usize,
    dirty: usize,
    busy: usize,
    asked: usize,
}

impl Patience {
    /// `tenth` is a tenth of a second, in jiffies.
    pub const fn new(tenth: usize) -> Self {
        Self {
            tenth,
            seen: 0,
            first: None,
            written: 0,
            all: 0,
            told: 0,
            least: usize::MAX,
            coming: 0,
            since: 0,
            dirty: usize::MAX,
            busy: 0,
            asked: 0,
        }
    }

    /// There was room for the first, who is to write so many pages, or nobody waits.
    pub fn served(&mut self, pages: usize) {
        *self = Self {
            seen: self.seen,
            // Most of it has come since, and was never looked for.
            coming: self.coming.min(pages),
            ..Self::new(self.tenth)
        };
        self.let_go(pages);
    }

    /// Who is to write so many pages was let go. That there are more for it is no lack of progress.
    pub fn let_go(&mut self, pages: usize) {
        self.coming = self.coming.saturating_add(pages);
    }

    /// So many pages were written while somebody waits, whoever has dirtied them.
    pub fn written(&mut self, pages: usize) {
        self.told = self.told.saturating_add(pages);
    }

    /// So many pages were let go as a share.
    pub fn shared(&mut self, pages: usize) {
        self.written = self.written.saturating_sub(pages.saturating_mul(2));
        self.let_go(pages);
    }

    /// The first of those that wait has left. What was kept for it is nobody's.
    pub fn left(&mut self) {
        self.written = 0;
    }

    /// One of those that wait looks, and finds that.
    ///
    /// Less than ever is progress. Less than the last time is not: who does not wait for a turn
    /// makes it more again, for ever. It ends after 200 ms too, as the pauses of
    /// balance_dirty_pages() do: what one large write has left, or others lazily, may take minutes,
    /// and those that write with O_DSYNC wait for their own pages only. From then on, half of what
    /// is written is for them; a share that is too small for anybody adds up.
    pub fn found(&mut self, footprint: Footprint, now: usize) -> Advice {
        let gap = now.wrapping_sub(self.seen);
        // Who may not wait comes back later, and finds that nothing has been done.
        let idle = self.busy == 0 && footprint.writeback == 0 && footprint.all >= self.least;
        let tenths = if idle { 20 } else { 5 };

        if gap >= self.tenth.saturating_mul(tenths) {
            // Nobody has waited since.
            self.coming = 0;
            self.served(0);
        }
        self.seen = now;
        self.dirty = self.dirty.min(footprint.dirty());
        self.busy = self.busy.max(footprint.writeback);

        // A server says late what it has written, and nobody does of what cannot be dropped.
        let less = self.all.saturating_sub(footprint.all);

        if self.first.is_some() {
            self.written = self.written.saturating_add(self.told.max(less));
        }
        self.told = 0;
        self.all = footprint.all;

        let first = *self.first.get_or_insert(now);
        let share = self.written / 2;
        let more = footprint.all.saturating_sub(self.least);

        if footprint.all < self.least || (1..=self.coming).contains(&more) {
            self.coming -= more;
            self.least = footprint.all;
            self.begin(footprint, now);
            self.asked = now;
        } else if now.wrapping_sub(self.since) >= self.tenth.saturating_mul(10) {
            let advice = Advice::Despair {
                dirty: self.dirty,
                idle: self.busy == 0,
            };

            self.coming = 0;
            self.begin(footprint, now);
            return advice;
        } else if now.wrapping_sub(self.asked) >= self.tenth {
            self.asked = now;
            return Advice::Kick;
        }
        if now.wrapping_sub(first) >= self.tenth.saturating_mul(2) && share > 0 {
            return Advice::Share(share);
        }
        Advice::Wait
    }

    /// From now on there is no progress, until there is.
    fn begin(&mut self, footprint: Footprint, now: usize) {
        self.since = now;
        self.dirty = footprint.dirty();
        self.busy = footprint.writeback;
    }
}

#[cfg_attr(CONFIG_DONTCACHE_RUST_KUNIT_TEST, macros::kunit_tests(dontcache_room))]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;
    use Admits::*;
    use Advice::*;

    const MAX: usize = usize::MAX;

    fn of(all: usize, writeback: usize) -> Footprint {
        Footprint { all, writeback }
    }

    #[test]
    #[rustfmt::skip]
    fn has_room_up_to_the_bound() {
        assert!(of(90, 90).has_room(10, 100));
        assert!(!of(91, 91).has_room(10, 100));
        // Half of the bound is asked for at most, one page at least.
        assert!(of(50, 50).has_room(1000, 100));
        assert!(!of(51, 51).has_room(1000, 100));
        assert!(of(99, 99).has_room(0, 100));
        assert!(!of(100, 100).has_room(0, 100));
        assert!(!of(1, 1).has_room(1, 1));
        // Whoever finds nothing may write.
        assert!(of(0, 0).has_room(1000, 0));
        assert!(!of(1, 1).has_room(1000, 0));
    }

    #[test]
    #[rustfmt::skip]
    fn what_gathers_is_room_up_to_half_of_the_bound() {
        assert!(of(130, 90).has_room(10, 100));
        assert!(of(140, 90).has_room(10, 100));
        assert!(!of(141, 90).has_room(10, 100));
        assert!(!of(130, 91).has_room(10, 100));
        // Counters are not read at once.
        assert!(!of(100, 200).has_room(1, 100));
        assert!(of(MAX - 1, 0).has_room(1, MAX));
        assert!(!of(130, 90).fits(10, 100));
        assert!(of(90, 10).fits(10, 100));
        assert!(!of(91, 10).fits(10, 100));
        assert!(of(50, 0).fits(1000, 100));
        assert!(!of(51, 0).fits(1000, 100));
        assert!(of(0, 0).fits(1, 0));
        assert!(!of(MAX, 0).fits(2, MAX - 1));
    }

    #[test]
    fn what_gathers_is_written_when_the_device_has_little_to_do() {
        assert!(of(50, 0).is_gathered(100));
        assert!(!of(49, 0).is_gathered(100));
        assert!(of(99, 49).is_gathered(100));
        assert!(!of(100, 50).is_gathered(100));
    }

    #[test]
    fn what_is_promised_is_no_room() {
        let mut turns = Turns::default();

        assert_eq!(turns.admits(of(60, 60), 40, 100, MAX), It);
        turns.granted(40, 0);
        assert_eq!(turns.admits(of(60, 60), 1, 100, MAX), Nobody);
        assert_eq!(turns.admits(of(10, 10), 50, 100, MAX), It);
        assert_eq!(turns.admits(of(11, 11), 50, 100, MAX), Nobody);
        // Nor is it if there is nothing else.
        let round = turns.granted(60, 0);

        assert_eq!(turns.admits(of(0, 0), 1, 100, MAX), Nobody);
        turns.took(60, round);
        turns.took(40, round);
        assert_eq!(turns.admits(of(60, 60), 40, 100, MAX), It);
        turns.took(1, round);
        assert_eq!(turns.admits(of(60, 60), 40, 100, MAX), It);
    }

    #[test]
    fn who_submits_waits_for_the_queue() {
        let mut turns = Turns::default();

        assert!(of(200, 50).is_queued(50) && !of(200, 51).is_queued(50));
        assert_eq!(turns.admits(of(60, 50), 40, 100, 50), It);
        assert_eq!(turns.admits(of(60, 51), 40, 100, 50), Others);
        // However much it writes: the queue is never empty before the next comes.
        assert_eq!(turns.admits(of(10, 10), 50, 100, 10), It);
        // One at a time, then.
        turns.granted(30, 0);
        assert_eq!(turns.admits(of(60, 20), 10, 100, 50), It);
        assert_eq!(turns.admits(of(60, 21), 10, 100, 50), Others);
        assert_eq!(turns.admits(of(140, 21), 10, 100, 50), Nobody);
        // There are slow ones, with one request.
        assert_eq!(Turns::default().admits(of(0, 0), 1, 100, 0), It);
    }

    #[test]
    fn what_was_taken_since_somebody_looked_is_no_room() {
        let mut turns = Turns::default();
        let seen = |turns: &Turns| Seen {
            footprint: of(60, 60),
            taken: turns.taken(),
        };
        let before = seen(&turns);

        assert_eq!(turns.now(before).all, 60);
        let round = turns.granted(40, 0);

        // It is owed, and would count twice.
        assert_eq!(turns.now(before).all, 60);
        assert_eq!(turns.admits(turns.now(before), 1, 100, MAX), Nobody);
        turns.took(40, round);
        assert_eq!(turns.admits(turns.now(before), 1, 100, MAX), Nobody);
        assert_eq!(turns.admits(turns.now(seen(&turns)), 40, 100, MAX), It);
        // Whoever takes it, and whatever was taken before.
        turns.took(MAX, round.wrapping_add(1));
        turns.took(2, round);
        assert_eq!(turns.now(before).all, 101);
        assert_eq!(turns.now(seen(&turns)).all, 60);
    }

    #[test]
    fn what_is_promised_to_who_does_not_run_is_room_after_a_while() {
        let mut turns = Turns::default();

        let late = turns.granted(60, MAX - 9);

        turns.looks(19, 30);
        assert_eq!(turns.granted(40, 19), late);
        // Those of a round are older then, and are given up after another.
        turns.looks(20, 30);
        assert_eq!(turns.admits(of(0, 0), 1, 100, MAX), Nobody);
        turns.took(40, late);
        assert_eq!(turns.admits(of(0, 0), 40, 100, MAX), It);

        let round = turns.granted(30, 49);

        assert_eq!(round, late.wrapping_add(1));
        turns.looks(49, 30);
        assert_eq!(turns.admits(of(0, 0), 11, 100, MAX), Nobody);
        turns.looks(50, 30);
        assert_eq!(turns.admits(of(0, 0), 50, 100, MAX), It);
        assert_eq!(turns.admits(of(30, 30), 41, 100, MAX), Nobody);

        // Who runs at last takes nothing of what others are owed since.
        turns.took(60, late);
        assert_eq!(turns.admits(of(30, 30), 41, 100, MAX), Nobody);
        turns.took(30, round);
        assert_eq!(turns.admits(of(50, 50), 50, 100, MAX), It);
        // What nobody is owed is not given up.
        turns.looks(100, 30);
        assert_eq!(turns.granted(1, 100), round.wrapping_add(1));
        turns.looks(129, 30);
        assert_eq!(turns.granted(1, 129), round.wrapping_add(1));
    }

    #[test]
    fn nobody_waits_for_what_cannot_be_written_for_a_while() {
        let mut turns = Turns::default();

        assert_eq!(turns.admits(of(400, 100), 1, 100, MAX), Nobody);
        turns.despaired(300, MAX - 4);
        assert_eq!(turns.stuck(), 300);
        assert_eq!(turns.admits(of(400, 100), 1, 100, MAX), Nobody);
        assert_eq!(turns.admits(of(350, 50), 50, 100, MAX), It);
        assert_eq!(turns.admits(of(50, 50), 50, 100, MAX), It);
        turns.looks(8994, 30);
        assert_eq!(turns.stuck(), 300);
        turns.looks(8995, 30);
        assert_eq!(turns.admits(of(350, 50), 50, 100, MAX), Nobody);
        // What was written after all is waited for when it is dirtied again.
        turns.despaired(300, 9000);
        turns.saw(400);
        assert_eq!(turns.stuck(), 300);
        turns.saw(20);
        assert_eq!(turns.stuck(), 20);
    }

    #[test]
    fn one_looks_at_a_time() {
        let mut turns = Turns::default();

        assert!(turns.may_serve(MAX - 2, 10));
        assert!(!turns.may_serve(6, 10));
        assert!(turns.may_look(MAX - 2, 10));
        assert!(!turns.may_look(MAX, 10));
        assert!(!turns.may_look(6, 10));
        assert!(turns.may_look(7, 10));
        assert!(!turns.may_look(16, 10));
        assert!(turns.may_look(17, 10));
    }

    /// Those that have a share wait on.
    fn unshared(advice: Advice) -> Advice {
        if let Share(_) = advice {
            Wait
        } else {
            advice
        }
    }

    /// Somebody finds so many pages so many jiffies after the first time, and is advised so.
    fn advised(found: &[(usize, usize, Advice)]) {
        const START: usize = MAX - 4;
        let mut patience = Patience::new(10);

        for &(all, after, advice) in found {
            let now = START.wrapping_add(after);

            assert_eq!(unshared(patience.found(of(all, 0), now)), advice);
        }
    }

    fn despair(dirty: usize) -> Advice {
        Despair { dirty, idle: true }
    }

    #[test]
    #[rustfmt::skip]
    fn who_waits_asks_for_help_and_then_despairs() {
        advised(&[
            (100, 0, Wait), (100, 9, Wait), (200, 10, Kick), (100, 19, Wait), (100, 49, Kick),
            (100, 98, Kick), (100, 100, despair(100)), (100, 109, Kick), (100, 149, Kick),
            (100, 198, Kick), (100, 200, despair(100)),
        ]);
        // Less than ever is progress. More than that, and less again, is none.
        advised(&[
            (100, 0, Wait), (300, 9, Wait), (200, 10, Kick), (99, 59, Wait), (99, 68, Wait),
            (99, 69, Kick), (99, 118, Kick), (99, 158, Kick), (99, 159, despair(99)),
        ]);
    }

    #[test]
    fn despair_knows_of_the_time_without_progress() {
        let mut patience = Patience::new(10);
        let mut found = |all, writeback, now| unshared(patience.found(of(all, writeback), now));

        assert_eq!(found(200, 200, 1000), Wait);
        assert_eq!(found(100, 100, 1040), Wait);
        for now in [1060, 1100, 1139] {
            assert_eq!(found(100, 0, now), Kick);
        }
        // It was written then, and is dirty since.
        assert_eq!(
            found(100, 0, 1140),
            Despair {
                dirty: 0,
                idle: false
            }
        );
        for now in [1180, 1220, 1239] {
            assert_eq!(found(100, 0, now), Kick);
        }
        assert_eq!(found(100, 0, 1240), despair(100));
    }

    #[test]
    fn what_is_let_go_is_no_lack_of_progress() {
        let mut patience = Patience::new(10);
        let found = |patience: &mut Patience, all, now| unshared(patience.found(of(all, all), now));

        assert_eq!(found(&mut patience, 100, 1000), Wait);
        for now in [1040, 1080, 1099] {
            assert_eq!(found(&mut patience, 100, now), Kick);
        }
        assert!(matches!(
            found(&mut patience, 100, 1100),
            Despair { idle: false, .. }
        ));
        patience.let_go(50);
        // It has not come yet.
        assert_eq!(found(&mut patience, 100, 1139), Kick);
        assert_eq!(found(&mut patience, 149, 1140), Wait);
        assert_eq!(found(&mut patience, 151, 1149), Wait);
        assert_eq!(found(&mut patience, 151, 1150), Kick);
        // The last of it. It is not there twice.
        assert_eq!(found(&mut patience, 150, 1160), Wait);
        assert_eq!(found(&mut patience, 151, 1170), Kick);
        // Nor is it what those write who were let go long ago.
        patience.served(7);
        assert_eq!(found(&mut patience, 10, 1180), Wait);
        assert_eq!(found(&mut patience, 17, 1190), Wait);
        assert_eq!(found(&mut patience, 18, 1200), Kick);
        patience.let_go(9);
        assert_eq!(found(&mut patience, 17, 1250), Wait);
        assert_eq!(found(&mut patience, 18, 1260), Kick);
        patience.let_go(9);
        for now in [1290, 1330, 1349] {
            assert_eq!(found(&mut patience, 17, now), Kick);
        }
        assert!(matches!(found(&mut patience, 17, 1350), Despair { .. }));
        assert_eq!(found(&mut patience, 18, 1360), Kick);
    }

    #[test]
    fn who_comes_back_each_second_despairs_of_what_is_idle() {
        // Before, under writeback, after so long, and what comes of it.
        let tests = [
            (100, 0, 10, despair(100)),
            (101, 0, 19, despair(100)),
            (100, 0, 20, Wait),
            (99, 0, 10, Wait),
            (100, 1, 10, Wait),
        ];

        for (all, writeback, tenths, advice) in tests {
            let mut patience = Patience::new(10);

            assert_eq!(patience.found(of(100, 0), 1000), Wait);
            let now = 1000 + 10 * tenths;

            assert_eq!(patience.found(of(all, writeback), now), advice);
        }
    }

    #[test]
    fn what_has_come_long_ago_is_no_progress() {
        let mut patience = Patience::new(10);

        for nr in 0..1000 {
            patience.served(32);
            assert_eq!(patience.found(of(100, 100), nr), Wait);
        }
        // Two turns at most.
        for nr in 1..=64 {
            assert_eq!(patience.found(of(100 + nr, 0), 1000 + 40 * nr), Wait);
        }
        assert_eq!(patience.found(of(165, 0), 3600), Kick);
        assert_eq!(patience.found(of(166, 0), 3640), Kick);
        assert!(matches!(patience.found(of(167, 0), 3660), Despair { .. }));
    }

    #[test]
    fn who_has_no_room_for_long_has_half_of_what_is_written() {
        const START: usize = MAX - 4;
        let mut patience = Patience::new(10);
        let mut found = |written, all, after, shared| {
            patience.written(written);

            let advice = patience.found(of(all, 0), START.wrapping_add(after));

            patience.shared(shared);
            advice
        };

        // What was written before somebody waited is not theirs.
        assert_eq!(found(500, 1000, 0, 0), Wait);
        // For 200 ms they wait for room, whatever is written.
        assert_eq!(found(200, 999, 19, 0), Wait);
        assert_eq!(found(10, 998, 20, 100), Share(105));
        // What nobody took is there the next time, and the rest is not there twice.
        assert_eq!(found(90, 997, 21, 50), Share(50));
        assert_eq!(found(1, 996, 22, 0), Wait);
        // Whatever others make it meanwhile.
        assert_eq!(found(1, 997, 23, 0), Share(1));
        // More than there is, if one had to be let go.
        assert_eq!(found(100, 995, 25, MAX), Share(51));
        assert_eq!(found(1, 994, 26, 0), Wait);
        assert_eq!(found(1, 993, 27, 0), Share(1));
        // No progress is none.
        assert_eq!(found(0, 993, 37, 0), Kick);
        assert_eq!(found(MAX, 993, 38, 0), Share(MAX / 2));
        assert_eq!(found(0, 993, 77, 0), Kick);
        assert_eq!(found(0, 993, 117, 0), Kick);
        assert_eq!(found(0, 993, 126, 0), Share(MAX / 2));
        assert_eq!(found(0, 993, 127, 0), despair(993));
    }

    #[test]
    fn what_was_kept_for_who_left_is_nobodys() {
        let mut patience = Patience::new(10);

        assert_eq!(patience.found(of(1000, 0), 0), Wait);
        patience.written(500);
        assert_eq!(patience.found(of(990, 0), 20), Share(250));
        patience.left();
        assert_eq!(patience.found(of(980, 0), 21), Share(5));
    }

    #[test]
    fn who_had_room_waits_for_it_again() {
        let mut patience = Patience::new(10);

        assert_eq!(patience.found(of(1000, 0), 0), Wait);
        patience.written(500);
        patience.served(0);
        assert_eq!(patience.found(of(900, 0), 20), Wait);
        patience.written(100);
        assert_eq!(patience.found(of(800, 0), 39), Wait);
        assert_eq!(patience.found(of(800, 0), 40), Share(50));
        // So does who comes when nobody has waited for a while.
        assert_eq!(patience.found(of(700, 0), 90), Wait);
        // What nobody tells is seen.
        patience.written(30);
        assert_eq!(patience.found(of(600, 0), 110), Share(50));
    }
}
