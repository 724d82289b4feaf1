//! More slots for a ring that is in use.

use std::fmt;
use std::ops::Range;

use super::Pointer;

/// Why a ring is not given the size that was asked for. Nothing is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GrowRefusal {
    /// A ring never shrinks: a slot that is taken away may be named by claims and by writers that are still under way.
    Shrinks {
        /// The slots that the ring has.
        has: u8,
        /// The slots that were asked for.
        wanted: u8,
    },
    /// More than [`Pointer::SLOTS`].
    TooMany {
        /// The slots that were asked for.
        wanted: u8,
    },
}

impl fmt::Display for GrowRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shrinks { has, wanted } => {
                write!(f, "the ring has {has} slots and cannot be made smaller, to {wanted}; ask for more than {has}")
            }
            Self::TooMany { wanted } => write!(f, "a ring has at most {} slots, not {wanted}", Pointer::SLOTS),
        }
    }
}

/// The slots that are added to a ring of `has` slots so that it has `wanted`, in the order in which they are made; none
/// when it has that many. They are free, and rotation opens them when it comes to them.
///
/// # Errors
///
/// [`GrowRefusal`] when it would shrink, or become larger than its pointer can say.
pub const fn grow(has: u8, wanted: u8) -> Result<Range<u8>, GrowRefusal> {
    if wanted > Pointer::SLOTS {
        Err(GrowRefusal::TooMany { wanted })
    } else if wanted < has {
        Err(GrowRefusal::Shrinks { has, wanted })
    } else {
        Ok(has..wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_grows_up_to_what_its_pointer_can_say_and_never_shrinks() {
        assert_eq!(grow(16, 20), Ok(16..20));
        assert!(grow(16, 16).unwrap().is_empty());
        assert_eq!(grow(4, Pointer::SLOTS), Ok(4..64));
        assert_eq!(grow(4, 65), Err(GrowRefusal::TooMany { wanted: 65 }));
        assert_eq!(grow(16, 15), Err(GrowRefusal::Shrinks { has: 16, wanted: 15 }));
    }
}
