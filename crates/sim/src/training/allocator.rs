//! A caching allocator like PyTorch's `CUDACachingAllocator`. Freed blocks are kept in pools of small and large blocks.
//! Blocks that are too large are split, and merged again when their neighbors are free. Segments are never returned.
//! Reserved memory that is not in use is fragmentation.

use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;
/// Granularity of sizes (`kMinBlockSize`).
const SIZE_GRANULARITY: u64 = 512;
/// Largest size of the small pool (`kSmallSize`), and the size of its segments (`kSmallBuffer`).
const SMALL: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
/// Smaller allocations share segments of `LARGE_SEGMENT` (`kMinLargeAlloc`, `kLargeBuffer`); others get their own
/// segment, rounded up.
const MIN_OWN_SEGMENT: u64 = 10 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
const ROUND: u64 = 2 * MIB;
/// A large block is split only if more than this is left over.
const MIN_SPLIT_REMAINDER: u64 = MIB;

/// Handle of a block in use, to free it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHandle(u32);

/// A block of a segment, with the indices of its neighbors.
#[derive(Debug, Clone, Copy)]
struct Block {
    bytes: u64,
    free: bool,
    small: bool,
    before: u32,
    after: u32,
}

const NONE: u32 = u32::MAX;

/// State of the allocator.
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    blocks: Vec<Block>,
    /// Unused entries of `blocks`, left by merged blocks.
    unused: Vec<u32>,
    /// Free blocks by size, in two pools.
    free: [BTreeSet<(u64, u32)>; 2],
    allocated: u64,
    reserved: u64,
    allocations: u64,
}

impl Allocator {
    /// Bytes in use, including rounding.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Total bytes of all segments.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Number of blocks allocated so far.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.allocations
    }

    fn pool(&mut self, small: bool) -> &mut BTreeSet<(u64, u32)> {
        let [large_pool, small_pool] = &mut self.free;
        if small { small_pool } else { large_pool }
    }

    fn add(&mut self, block: Block) -> u32 {
        match self.unused.pop() {
            Some(at) => {
                if let Some(place) = self.blocks.get_mut(at as usize) {
                    *place = block;
                }
                at
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        }
    }

    fn block(&mut self, at: u32) -> Option<&mut Block> {
        self.blocks.get_mut(at as usize)
    }

    /// Allocates a block of at least `bytes` bytes.
    pub fn allocate(&mut self, bytes: f64) -> BlockHandle {
        let wanted = (bytes.max(1.0) as u64).div_ceil(SIZE_GRANULARITY) * SIZE_GRANULARITY;
        let small = wanted <= SMALL;
        let found = self.pool(small).range((wanted, 0)..).next().copied();
        let at = match found {
            Some(entry) => {
                self.pool(small).remove(&entry);
                entry.1
            }
            None => {
                let segment = match (small, wanted < MIN_OWN_SEGMENT) {
                    (true, _) => SMALL_SEGMENT,
                    (false, true) => LARGE_SEGMENT,
                    (false, false) => wanted.div_ceil(ROUND) * ROUND,
                };
                self.reserved += segment;
                self.add(Block { bytes: segment, free: true, small, before: NONE, after: NONE })
            }
        };
        let Some(block) = self.block(at).copied() else { return BlockHandle(NONE) };
        let rest = block.bytes - wanted;
        let splits = if small { rest >= SIZE_GRANULARITY } else { rest > MIN_SPLIT_REMAINDER };
        if splits {
            let new = self.add(Block { bytes: rest, free: true, small, before: at, after: block.after });
            if let Some(after) = self.block(block.after) {
                after.before = new;
            }
            if let Some(own) = self.block(at) {
                (own.bytes, own.after) = (wanted, new);
            }
            self.pool(small).insert((rest, new));
        }
        if let Some(own) = self.block(at) {
            own.free = false;
            let bytes = own.bytes;
            self.allocated += bytes;
        }
        self.allocations += 1;
        BlockHandle(at)
    }

    /// Frees a block and merges it with free neighbors.
    pub fn release(&mut self, held: BlockHandle) {
        let mut at = held.0;
        let Some(block) = self.block(at).filter(|block| !block.free) else { return };
        block.free = true;
        let mut own = *block;
        self.allocated -= own.bytes;
        if let Some(before) = self.block(own.before).filter(|other| other.free).copied() {
            self.pool(own.small).remove(&(before.bytes, own.before));
            self.unused.push(at);
            at = own.before;
            own = Block { bytes: own.bytes + before.bytes, before: before.before, ..own };
        }
        if let Some(after) = self.block(own.after).filter(|other| other.free).copied() {
            self.pool(own.small).remove(&(after.bytes, own.after));
            self.unused.push(own.after);
            own = Block { bytes: own.bytes + after.bytes, after: after.after, ..own };
        }
        if let Some(after) = self.block(own.after) {
            after.before = at;
        }
        if let Some(place) = self.block(at) {
            *place = own;
        }
        self.pool(own.small).insert((own.bytes, at));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::kernel::Stream;

    fn mib(n: f64) -> f64 {
        n * MIB as f64
    }

    #[test]
    fn segments_have_the_sizes_of_the_caching_allocator() {
        let mut a = Allocator::default();
        a.allocate(100.0);
        assert_eq!((a.allocated(), a.reserved()), (512, 2 * MIB));
        a.allocate(mib(3.0));
        assert_eq!(a.reserved(), 22 * MIB);
        // From the remainder of the same segment.
        a.allocate(mib(9.0));
        assert_eq!(a.reserved(), 22 * MIB);
        a.allocate(mib(11.0) + 1.0);
        assert_eq!(a.reserved(), 34 * MIB);
    }

    #[test]
    fn freed_blocks_are_joined_and_reused() {
        let mut a = Allocator::default();
        let held: Vec<BlockHandle> = (0..4).map(|_| a.allocate(mib(4.0))).collect();
        assert_eq!(a.reserved(), 20 * MIB);
        // Two adjacent free blocks have space for eight; two separate ones do not.
        a.release(held[0]);
        a.release(held[2]);
        a.allocate(mib(8.0));
        assert_eq!(a.reserved(), 40 * MIB, "fragmented");
        a.release(held[1]);
        a.allocate(mib(8.0));
        assert_eq!(a.reserved(), 40 * MIB, "joined");
        // Freeing twice has no effect.
        a.release(held[1]);
    }

    #[test]
    fn every_byte_is_accounted_for_under_random_requests() {
        let mut stream = Stream::new(3, 0, 0);
        let (mut a, mut held) = (Allocator::default(), Vec::new());
        for _ in 0..20_000 {
            if stream.uniform() < 0.55 || held.is_empty() {
                let size = 1024.0 * (1.0 + 30_000.0 * stream.uniform().powi(4));
                held.push(a.allocate(size));
            } else {
                let at = stream.below(held.len() as u64) as usize;
                a.release(held.swap_remove(at));
            }
            let free: u64 = a.free.iter().flatten().map(|(bytes, _)| bytes).sum();
            assert_eq!(a.allocated() + free, a.reserved());
        }
        held.into_iter().for_each(|one| a.release(one));
        assert_eq!(a.allocated(), 0);
        // All blocks are merged again: every free block is a whole segment.
        assert!(
            a.free
                .iter()
                .flatten()
                .all(|&(_, at)| a.blocks[at as usize].before == NONE && a.blocks[at as usize].after == NONE)
        );
    }
}
