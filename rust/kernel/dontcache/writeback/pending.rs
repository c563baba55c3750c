// SPDX-License-Identifier: GPL-2.0

//! What uncached writes have left dirty in a mapping, and who is to write it.
//!
//! Pure. A writer that streams writes itself what makes a good request. What is small or comes from
//! everywhere gathers for a worker, which writes it in the order of its offsets.

use super::units::Pages;

/// How often what is dirty is written once more, when there is no writeback that it may wait for.
const AGAIN: u32 = 20;

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
    /// Since when, in jiffies.
    since: usize,
    /// Where the last write ended, in bytes.
    next: usize,
    /// When that was, in jiffies.
    at: usize,
    /// What was to be written and was dirty afterwards, since when, and how often. Not a part of
    /// `range`: a stream that went on with that would submit page by page.
    left: Option<Range>,
    left_since: usize,
    again: u32,
    /// Whether it went on where the one before had ended.
    streams: bool,
}

impl Pending {
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
        let written = Range {
            first: first >> page_shift,
            end: (end.saturating_sub(1) >> page_shift).saturating_add(1),
        };
        let all = self.range.map_or(written, |range| range.with(written));

        if self.range.is_none() {
            self.since = now;
        }
        self.streams = first == self.next;
        self.again = 0;
        self.next = end;
        self.at = now;
        self.range = Some(all);

        let whole = self.without_tail(all, page_shift);

        if written.pages() < good && (!self.streams || whole.pages() < good) {
            return Next::Gather;
        }
        if nowait {
            return Next::Worker;
        }
        self.since = now;
        self.leave(all, whole);
        Next::Write(whole)
    }

    /// How many pages a writer may write before it waits for others, who has written `pages` of them
    /// at once and `good` of them make a good request. Anywhere in a file each page is a request.
    pub fn turn(&self, pages: Pages, good: Pages) -> Pages {
        pages.max(if self.streams { good } else { SCATTERED })
    }

    /// Takes what is to be written now: what has gathered for `gather` jiffies. The page at the end of
    /// a stream is left for `tail` jiffies: the next write goes on with it.
    pub fn take(
        &mut self,
        now: usize,
        gather: usize,
        tail: usize,
        page_shift: u32,
    ) -> Option<Range> {
        if now.wrapping_sub(self.left_since) >= gather {
            if let Some(left) = self.left.take() {
                return Some(left);
            }
        }

        let all = self.range?;

        if now.wrapping_sub(self.since) < gather {
            return None;
        }

        let whole = if now.wrapping_sub(self.at) < tail {
            self.without_tail(all, page_shift)
        } else {
            all
        };

        self.leave(all, whole);
        (whole.first < whole.end).then_some(whole)
    }

    /// What was taken is dirty still; returns whether it is to be written once more. `busy` is
    /// whether some of the file is under writeback. If not, others may be who dirty it: that ends.
    pub fn again(&mut self, range: Range, now: usize, busy: bool) -> bool {
        if !busy {
            if self.again >= AGAIN {
                return false;
            }
            self.again += 1;
        }
        self.left_since = now;
        self.left = Some(self.left.map_or(range, |left| left.with(range)));
        true
    }

    /// `all` without the page that the last write filled in part, if that is its last.
    fn without_tail(&self, all: Range, page_shift: u32) -> Range {
        let last = self.next >> page_shift;
        let partial = last << page_shift != self.next;

        if partial && last.checked_add(1) == Some(all.end) {
            Range { end: last, ..all }
        } else {
            all
        }
    }

    fn leave(&mut self, all: Range, taken: Range) {
        self.range = (taken.end < all.end).then_some(Range {
            first: taken.end,
            end: all.end,
        });
    }
}
