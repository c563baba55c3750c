// SPDX-License-Identifier: GPL-2.0

//! What uncached writes have left dirty in a mapping, and who is to write it.
//!
//! Pure. A writer that streams writes itself what makes a good request. What is small or comes from
//! everywhere gathers for a worker, which writes it in the order of its offsets.

use super::units::Pages;

/// How often what is dirty is written once more, when there is no writeback that it may wait for,
/// and when there is.
const AGAIN: u32 = 20;
const AGAIN_BUSY: u32 = 100;

/// The same if it was too much for one time: with what others write there it may be so for ever.
const AGAIN_CUT: u32 = 500;

/// What a writer that does not stream may write in its turn.
const SCATTERED: Pages = Pages(4);

/// Pages from `first` to before `end`, by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first one.
    pub first: usize,
    /// The one after the last.
    pub end: usize,
}

impl Range {
    fn pages(self) -> Pages {
        Pages(self.end.saturating_sub(self.first))
    }

    fn with(self, other: Range) -> Range {
        Range {
            first: self.first.min(other.first),
            end: self.end.max(other.end),
        }
    }
}

/// What a write comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The writer is to write these pages now.
    Write(Range),
    /// A worker is to write all now.
    Worker,
    /// A worker is to write it when it has gathered.
    Gather,
}

/// The pages of a mapping that wait for their writeback to be started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    range: Option<Range>,
    /// The order of the least folio: what is written in part, and gone, is read again.
    block: u32,
    /// Since when, in jiffies.
    since: usize,
    /// What the stream has not submitted begins here, and here the last write ended, in bytes.
    from: usize,
    next: usize,
    /// When that was, in jiffies.
    at: usize,
    /// What was to be written and was dirty afterwards, since when, and how often. Not a part of
    /// `range`: a stream that went on with that would submit page by page.
    left: Option<Range>,
    left_since: usize,
    again: u32,
    cut: u32,
    /// Whether it went on where the one before had ended.
    streams: bool,
    /// How much writers may write before they ask for room again, and when that was granted.
    credit: Pages,
    granted: usize,
}

impl Pending {
    /// Nothing, in a file whose folios have `1 << block` pages at least.
    pub fn new(block: u32) -> Self {
        Self {
            block,
            ..Self::default()
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.range.is_none() && self.left.is_none()
    }

    /// Follows a write of the bytes from `first` to before `end`, at least one.
    ///
    /// `good` is what makes a good request; a writer that is `nowait` may not write.
    #[inline]
    pub fn wrote(
        &mut self,
        first: usize,
        end: usize,
        now: usize,
        good: Pages,
        nowait: bool,
        page_shift: u32,
    ) -> Next {
        let end_page = (end.saturating_sub(1) >> page_shift).saturating_add(1);
        let written = Range {
            first: first >> page_shift,
            end: end_page,
        };
        let all = self.range.map_or(written, |range| range.with(written));

        if self.range.is_none() {
            self.since = now;
        }
        self.streams = first == self.next;
        if !self.streams {
            self.from = first;
        }
        self.again = 0;
        self.cut = 0;
        self.next = end;
        self.at = now;
        self.range = Some(all);

        let stream = Range {
            first: self.from >> page_shift,
            end: end_page,
        };
        let whole = self.without_tail(stream, page_shift);

        if written.pages() < good && whole.pages() < good {
            return Next::Gather;
        }
        if nowait {
            return Next::Worker;
        }
        self.leave(whole, page_shift);
        // What others have left there is not younger for it: a stream would keep it for ever.
        let left = self.range.unwrap_or(written);

        if left.first >= written.first && left.end <= written.end {
            self.since = now;
        }
        Next::Write(whole)
    }

    /// How many pages a writer may write before it waits for others, who has written `pages` of
    /// them at once and `good` of them make a good request. Anywhere in a file each page is a
    /// request.
    pub fn turn(&self, pages: Pages, good: Pages) -> Pages {
        pages.max(if self.streams { good } else { SCATTERED })
    }

    /// Whether who has written `pages` at once submits that itself, and leaves it to no worker.
    pub fn submits(&self, pages: Pages, good: Pages) -> bool {
        self.streams || pages >= good
    }

    /// Writers may write so much, from now on.
    pub fn grant(&mut self, pages: Pages, now: usize) {
        self.credit = self.credit.plus(pages);
        self.granted = now;
    }

    /// Takes what a writer has written from that; returns whether there is as much for another
    /// write. What was granted `ticks` jiffies ago is not there any more: who goes from file to
    /// file has a turn in one of them.
    #[inline]
    pub fn spend(&mut self, pages: Pages, now: usize, ticks: usize) -> bool {
        if now.wrapping_sub(self.granted) >= ticks {
            self.credit = Pages(0);
        }
        self.credit = Pages(self.credit.0.saturating_sub(pages.0));
        self.credit >= pages
    }

    /// Takes what is to be written now: what has gathered for `gather` jiffies, or waits for
    /// `again` since it was written. The page at the end of a stream is left for `tail` jiffies:
    /// the next write goes on with it.
    pub fn take(
        &mut self,
        now: usize,
        gather: usize,
        again: usize,
        tail: usize,
        page_shift: u32,
    ) -> Option<Range> {
        let waits = |range: Option<Range>, since| range.map(|_| now.wrapping_sub(since));
        let left = waits(self.left, self.left_since).filter(|&left| left >= again);
        let gathered = waits(self.range, self.since).filter(|&range| range >= gather);

        // What is dirtied again and again, and comes back each time, keeps nothing else from its
        // turn.
        if left.is_some() && left >= gathered {
            return self.left.take();
        }

        gathered?;
        let all = self.range?;

        let whole = if now.wrapping_sub(self.at) < tail {
            self.without_tail(all, page_shift)
        } else {
            all
        };

        self.leave(whole, page_shift);
        self.since = now;
        (whole.first < whole.end).then_some(whole)
    }

    /// What was taken is dirty still; returns whether it is to be written once more. `busy` is
    /// whether some of the file is under writeback, `cut` whether it was too much for one time.
    /// Others may be who dirty it: that ends.
    pub fn again(&mut self, range: Range, now: usize, busy: bool, cut: bool) -> bool {
        let (count, most) = match (cut, busy) {
            (true, _) => (&mut self.cut, AGAIN_CUT),
            (false, true) => (&mut self.again, AGAIN_BUSY),
            (false, false) => (&mut self.again, AGAIN),
        };

        if *count >= most {
            return false;
        }
        *count += 1;
        self.left_since = now;
        self.left = Some(self.left.map_or(range, |left| left.with(range)));
        true
    }

    /// `all` without the page, or the block, that the last write filled in part, if that is its
    /// last.
    fn without_tail(&self, all: Range, page_shift: u32) -> Range {
        let block_shift = page_shift + self.block;
        let last = self.next >> block_shift;
        let partial = last << block_shift != self.next;
        let first = last << self.block;

        if partial && (all.end - 1) >> self.block == last {
            Range {
                end: first.max(all.first),
                ..all
            }
        } else {
            all
        }
    }

    /// What is `taken` is not pending any more, if it is at either end of what is.
    fn leave(&mut self, taken: Range, page_shift: u32) {
        let Some(all) = self.range else {
            return;
        };
        let left = Range {
            first: if taken.first <= all.first {
                all.first.max(taken.end)
            } else {
                all.first
            },
            end: if taken.end >= all.end {
                all.end.min(taken.first)
            } else {
                all.end
            },
        };

        self.range = (left.first < left.end).then_some(left);
        if (taken.first..taken.end).contains(&(self.from >> page_shift)) {
            self.from = self.next.min(taken.end << page_shift);
        }
    }
}

#[cfg_attr(
    CONFIG_DONTCACHE_RUST_KUNIT_TEST,
    macros::kunit_tests(dontcache_pending)
)]
#[cfg(any(test, CONFIG_DONTCACHE_RUST_KUNIT_TEST))]
mod tests {
    use super::*;
    use Next::*;

    const SHIFT: u32 = 12;
    const PAGE: usize = 1 << SHIFT;
    const GOOD: Pages = Pages(8);
    const GATHER: usize = 20;
    const TAIL: usize = 100;
    /// When the first write is. The next is ten jiffies later, and after an overflow.
    const START: usize = usize::MAX - 4;

    fn range(first: usize, end: usize) -> Range {
        Range { first, end }
    }

    fn some(first: usize, end: usize) -> Option<Range> {
        Some(range(first, end))
    }

    /// Follows writes of the bytes from the one number to before the other.
    fn follow(writes: &[(usize, usize)]) -> (Pending, Next) {
        let mut pending = Pending::default();
        let mut next = Gather;

        for (nr, &(first, end)) in writes.iter().enumerate() {
            next = pending.wrote(first, end, START.wrapping_add(10 * nr), GOOD, false, SHIFT);
        }
        (pending, next)
    }

    /// What the last write comes to, and what is pending then.
    fn wrote(writes: &[(usize, usize)]) -> (Next, Option<Range>) {
        let (pending, next) = follow(writes);

        (next, pending.range)
    }

    /// What is taken so many jiffies after the first write, and what is pending then.
    fn taken(writes: &[(usize, usize)], gather: usize, at: usize) -> [Option<Range>; 2] {
        let (mut pending, _) = follow(writes);
        let taken = pending.take(START.wrapping_add(at), gather, GATHER, TAIL, SHIFT);

        [taken, pending.range]
    }

    #[test]
    #[rustfmt::skip]
    fn stream_writes_what_makes_a_good_request() {
        assert_eq!(wrote(&[(0, 8 * PAGE)]), (Write(range(0, 8)), None));
        assert_eq!(wrote(&[(0, 7 * PAGE)]), (Gather, some(0, 7)));
        assert_eq!(wrote(&[(0, 7 * PAGE), (7 * PAGE, 8 * PAGE)]), (Write(range(0, 8)), None));
        assert_eq!(wrote(&[(0, 100), (100, 200)]), (Gather, some(0, 1)));
        // The page at its end is the next write's, and does not make it good.
        assert_eq!(wrote(&[(0, 7 * PAGE), (7 * PAGE, 8 * PAGE - 1)]), (Gather, some(0, 8)));
        assert_eq!(wrote(&[(0, 8 * PAGE + 1)]), (Write(range(0, 8)), some(8, 9)));
        assert_eq!(wrote(&[(0, 8 * PAGE - 1)]), (Write(range(0, 7)), some(7, 8)));
        assert_eq!(wrote(&[(0, 8 * PAGE + 1), (8 * PAGE + 1, 9 * PAGE)]), (Gather, some(8, 9)));

        let (last, max) = (usize::MAX >> SHIFT, usize::MAX);

        assert_eq!(
            wrote(&[(max - 8 * PAGE, max)]),
            (Write(range(last - 8, last)), some(last, last + 1)),
        );
    }

    #[test]
    #[rustfmt::skip]
    fn stream_leaves_the_block_at_its_end() {
        let mut pending = Pending::new(2);
        let mut wrote = |first, end| {
            let next = pending.wrote(first, end, START, GOOD, false, SHIFT);

            (next, pending.range)
        };

        assert_eq!(wrote(0, 10 * PAGE), (Write(range(0, 8)), some(8, 10)));
        assert_eq!(wrote(10 * PAGE, 11 * PAGE), (Gather, some(8, 11)));
        assert_eq!(wrote(11 * PAGE, 16 * PAGE), (Write(range(8, 16)), None));
        assert_eq!(wrote(16 * PAGE, 24 * PAGE + 1), (Write(range(16, 24)), some(24, 25)));
        assert_eq!(wrote(24 * PAGE + 1, 31 * PAGE), (Gather, some(24, 31)));
        // What begins in it.
        assert_eq!(wrote(41 * PAGE, 43 * PAGE), (Gather, some(24, 43)));
        assert_eq!(pending.take(START.wrapping_add(20), GATHER, GATHER, TAIL, SHIFT), some(24, 40));
        assert_eq!(pending.take(START.wrapping_add(40), GATHER, GATHER, TAIL, SHIFT), None);
        assert_eq!(
            pending.take(START.wrapping_add(100), GATHER, GATHER, TAIL, SHIFT),
            some(40, 43),
        );
    }

    #[test]
    #[rustfmt::skip]
    fn what_is_small_and_scattered_gathers() {
        assert_eq!(wrote(&[(PAGE - 1, PAGE + 1)]), (Gather, some(0, 2)));
        assert_eq!(wrote(&[(20 * PAGE, 21 * PAGE), (0, PAGE)]), (Gather, some(0, 21)));
        assert_eq!(wrote(&[(0, PAGE), (20 * PAGE, 21 * PAGE)]), (Gather, some(0, 21)));
        assert_eq!(wrote(&[(0, 7 * PAGE), (PAGE, 2 * PAGE)]), (Gather, some(0, 7)));
        // What is large takes it along.
        let large = &[(20 * PAGE, 21 * PAGE), (0, 8 * PAGE)];
        assert_eq!(wrote(large), (Write(range(0, 8)), some(8, 21)));
        let large = &[(0, PAGE), (13 * PAGE, 21 * PAGE)];
        assert_eq!(wrote(large), (Write(range(13, 21)), some(0, 13)));
        // A stream is as long as it is, whatever else is pending.
        let stream = &[(20 * PAGE, 21 * PAGE), (0, PAGE), (PAGE, 2 * PAGE)];
        assert_eq!(wrote(stream), (Gather, some(0, 21)));
        let stream = &[
            (0, PAGE),
            (90 * PAGE, 91 * PAGE),
            (30 * PAGE, 37 * PAGE),
            (37 * PAGE, 38 * PAGE),
        ];
        assert_eq!(wrote(stream), (Write(range(30, 38)), some(0, 91)));
    }

    #[test]
    #[rustfmt::skip]
    fn nowait_leaves_to_a_worker_what_is_good() {
        let mut pending = Pending::default();

        assert_eq!(pending.wrote(0, 7 * PAGE, 0, GOOD, true, SHIFT), Gather);
        assert_eq!(pending.wrote(7 * PAGE, 8 * PAGE + 1, 0, GOOD, true, SHIFT), Worker);
        assert_eq!(pending.range, some(0, 9));
    }

    #[test]
    fn turn_is_a_good_request_of_a_stream_only() {
        let turn = |writes, pages| follow(writes).0.turn(Pages(pages), GOOD).0;

        assert_eq!(turn(&[(0, PAGE)], 1), 8);
        assert_eq!(turn(&[(0, PAGE)], 9), 9);
        assert_eq!(turn(&[(PAGE, 2 * PAGE)], 1), 4);
        assert_eq!(turn(&[(PAGE, 2 * PAGE)], 5), 5);
        assert_eq!(turn(&[(PAGE, 2 * PAGE), (2 * PAGE, 3 * PAGE)], 1), 8);
        assert_eq!(turn(&[(0, PAGE), (2 * PAGE, 3 * PAGE)], 1), 4);
    }

    #[test]
    fn streams_and_what_is_large_are_submitted_by_who_writes() {
        let submits = |writes, pages| follow(writes).0.submits(Pages(pages), GOOD);

        assert!(submits(&[(0, PAGE)], 1));
        assert!(!submits(&[(PAGE, 2 * PAGE)], 7));
        assert!(submits(&[(PAGE, 2 * PAGE)], 8));
        assert!(submits(&[(PAGE, 2 * PAGE), (2 * PAGE, 3 * PAGE)], 1));
    }

    #[test]
    fn credit_is_spent_once_and_not_late() {
        let mut pending = Pending::default();

        assert!(!pending.spend(Pages(1), 0, 30));
        pending.grant(Pages(8), START);
        assert!(pending.spend(Pages(3), START, 30));
        assert!(!pending.spend(Pages(3), START.wrapping_add(29), 30));
        // Two are left, for who writes less.
        assert!(pending.spend(Pages(1), START.wrapping_add(29), 30));
        assert!(!pending.spend(Pages(1), START.wrapping_add(29), 30));
        // Of several writers each may have its own.
        pending.grant(Pages(8), START);
        pending.grant(Pages(8), START.wrapping_add(10));
        assert!(pending.spend(Pages(8), START.wrapping_add(39), 30));
        assert!(!pending.spend(Pages(1), START.wrapping_add(40), 30));
        pending.grant(Pages(2), START.wrapping_add(41));
        assert!(pending.spend(Pages(1), START.wrapping_add(41), 30));
        assert!(!pending.spend(Pages(1), START.wrapping_add(41), 30));
    }

    #[test]
    #[rustfmt::skip]
    fn worker_takes_what_has_gathered_since_the_first_write() {
        let (one, two) = ([(0, PAGE)], [(0, PAGE), (PAGE, 2 * PAGE)]);

        assert_eq!(taken(&[], 0, 0), [None, None]);
        assert_eq!(taken(&one, GATHER, 19), [None, some(0, 1)]);
        assert_eq!(taken(&one, GATHER, 20), [some(0, 1), None]);
        assert_eq!(taken(&one, 0, 0), [some(0, 1), None]);
        assert_eq!(taken(&two, GATHER, 19), [None, some(0, 2)]);
        assert_eq!(taken(&two, GATHER, 20), [some(0, 2), None]);
        // What a worker has taken is not the stream's any more.
        let (mut pending, _) = follow(&one);

        assert_eq!(pending.take(START.wrapping_add(20), GATHER, GATHER, TAIL, SHIFT), some(0, 1));
        assert_eq!(pending.wrote(PAGE, 8 * PAGE, 0, GOOD, false, SHIFT), Gather);
        assert_eq!(pending.wrote(8 * PAGE, 9 * PAGE, 0, GOOD, false, SHIFT), Write(range(1, 9)));
        // What a writer leaves gathers from then on.
        let tail = [(0, PAGE), (PAGE, 8 * PAGE + 1)];

        assert_eq!(taken(&tail, 2 * TAIL, 209), [None, some(8, 9)]);
        assert_eq!(taken(&tail, 2 * TAIL, 210), [some(8, 9), None]);
    }

    #[test]
    #[rustfmt::skip]
    fn stream_keeps_nothing_else_from_its_turn() {
        let large = (20 * PAGE, 28 * PAGE);

        // Before it, and behind it.
        assert_eq!(taken(&[(0, PAGE), large], GATHER, 19), [None, some(0, 20)]);
        assert_eq!(taken(&[(0, PAGE), large], GATHER, 20), [some(0, 20), None]);
        assert_eq!(taken(&[(90 * PAGE, 91 * PAGE), large], GATHER, 20), [some(28, 91), None]);
        assert_eq!(
            taken(&[(0, PAGE), large, (28 * PAGE, 36 * PAGE)], GATHER, 20),
            [some(0, 28), None],
        );
    }

    #[test]
    #[rustfmt::skip]
    fn worker_leaves_the_end_of_a_stream_for_a_while() {
        let tail = [(0, PAGE), (PAGE, 2 * PAGE + 1)];

        assert_eq!(taken(&tail, GATHER, 109), [some(0, 2), some(2, 3)]);
        assert_eq!(taken(&tail, GATHER, 110), [some(0, 3), None]);
        assert_eq!(taken(&[(0, 1)], GATHER, 99), [None, some(0, 1)]);
        assert_eq!(taken(&[(0, 1)], GATHER, 100), [some(0, 1), None]);
        // Neither is at the end.
        assert_eq!(taken(&[(0, 3 * PAGE), (0, 1)], GATHER, 20), [some(0, 3), None]);
        assert_eq!(taken(&[(0, 3 * PAGE), (0, 2 * PAGE)], GATHER, 20), [some(0, 3), None]);
    }

    #[test]
    fn dirty_again_is_written_again_but_not_for_ever() {
        let (mut pending, _) = follow(&[(4 * PAGE, 5 * PAGE)]);

        assert_eq!(
            pending.take(START.wrapping_add(20), GATHER, GATHER, TAIL, SHIFT),
            some(4, 5)
        );
        assert!(pending.is_empty());
        // When it had time to come to the device.
        assert!(pending.again(range(2, 3), 1000, false, false));
        assert!(pending.again(range(5, 6), 1000, false, false));
        assert!(!pending.is_empty());
        assert_eq!(pending.take(1019, 0, GATHER, TAIL, SHIFT), None);
        assert_eq!(pending.take(1020, GATHER, GATHER, TAIL, SHIFT), some(2, 6));
        for _ in 2..AGAIN {
            assert!(pending.again(range(2, 3), 0, false, false));
            assert_eq!(pending.take(0, 0, 0, TAIL, SHIFT), some(2, 3));
        }
        assert!(!pending.again(range(2, 3), 0, false, false));
        assert!(pending.is_empty());
        // What was too much for one time is no failure, for long.
        for _ in 0..AGAIN_CUT {
            assert!(pending.again(range(2, 3), 0, false, true));
            assert_eq!(pending.take(0, 0, 0, TAIL, SHIFT), some(2, 3));
        }
        assert!(!pending.again(range(2, 3), 0, true, true));
        // Longer if there is writeback.
        for _ in AGAIN..AGAIN_BUSY {
            assert!(pending.again(range(2, 3), 0, true, false));
            assert_eq!(pending.take(0, 0, 0, TAIL, SHIFT), some(2, 3));
        }
        assert!(!pending.again(range(2, 3), 0, true, false));
        // Beside what a stream goes on with.
        assert_eq!(pending.wrote(0, 7 * PAGE, 0, GOOD, false, SHIFT), Gather);
        assert!(pending.again(range(2, 3), 0, true, false));
        assert_eq!(
            pending.wrote(7 * PAGE, 8 * PAGE, 1, GOOD, false, SHIFT),
            Write(range(0, 8))
        );
        assert_eq!(
            pending.wrote(8 * PAGE, 9 * PAGE, 1, GOOD, false, SHIFT),
            Gather
        );
        assert_eq!(pending.take(20, GATHER, GATHER, TAIL, SHIFT), some(2, 3));
        assert_eq!(pending.take(20, GATHER, GATHER, TAIL, SHIFT), None);
        assert_eq!(pending.take(21, GATHER, GATHER, TAIL, SHIFT), some(8, 9));

        // Another write begins anew.
        pending.wrote(0, 1, 0, GOOD, false, SHIFT);
        assert!(!pending.is_empty());
        assert!(pending.again(range(2, 3), 0, false, true));
        assert!(pending.again(range(2, 3), 0, false, false));
    }
}
