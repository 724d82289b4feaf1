//! The executable model of a store: the rules of this crate put together, without a clock, a lock or a disk.
