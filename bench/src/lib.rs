//! Awa beside other job queues on PostgreSQL: the same work on the same server in the same run, in alternation.
//!
//! Each queue is a [`peer::Peer`], used through its public interface at the setting that its own documentation recommends
//! for throughput. [`rounds`] alternates them, [`scenario`] measures, [`table`] shows.

pub mod args;
pub mod peer;
pub mod peers;
pub mod plan;
pub mod rounds;
pub mod runs;
pub mod scenario;
pub mod server;
pub mod table;
pub mod versions;
