//! One file per peer.

mod apalis;
mod awa;
mod floor;
mod graphile;
mod pgq;
mod published_awa;
mod skip_locked;

use anyhow::{Result, bail};

use crate::peer::Peer;

/// The peer to which the others are compared.
pub const OURS: &str = awa::NAME;
/// What no queue can be faster than, as long as it keeps each job in a row of its own.
pub const FLOOR: &str = floor::NAME;

/// All peers, in the order of the table.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(awa::Awa),
        Box::new(published_awa::PublishedAwa),
        Box::new(graphile::Graphile),
        Box::new(apalis::Apalis),
        Box::new(pgq::PgQ),
        Box::new(skip_locked::SkipLocked),
        Box::new(floor::Floor),
    ]
}

/// The peers with these names, in their order; all when none is named.
pub fn chosen(names: &[String]) -> Result<Vec<Box<dyn Peer>>> {
    let mut left = all();
    if names.is_empty() {
        return Ok(left);
    }
    let known = left.iter().map(|peer| peer.name()).collect::<Vec<_>>().join(", ");
    let mut found = Vec::new();
    for name in names {
        match left.iter().position(|peer| peer.name() == name) {
            Some(place) => found.push(left.remove(place)),
            None => bail!("no peer {name}, or it is named twice; there are {known}"),
        }
    }
    Ok(found)
}
