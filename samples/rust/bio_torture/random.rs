// SPDX-License-Identifier: GPL-2.0

//! Random decisions that a seed repeats, as far as the threads' timing lets it.

/// A stream of numbers (xorshift64*).
///
/// # Invariants
///
/// The state is not 0, which would give nothing but 0.
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each `stream`.
    pub(crate) fn new(seed: u64, stream: u32) -> Self {
        let mixed = (seed ^ u64::from(stream).wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);

        // INVARIANT: The lowest bit is set.
        Self((mixed ^ (mixed >> 29)) | 1)
    }

    /// A number less than `limit`, or 0.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;

        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;

        ((high * u64::from(limit)) >> 32) as u32
    }

    /// [`true`] once in `times`.
    pub(crate) fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }
}
