//! Arrays of one dimension in binary form.
//!
//! The layout: dimensions, a flag for NULL elements, the element type, then per dimension its length and lower bound,
//! then each element as its length and bytes, where the length -1 is a NULL. An empty array has no dimension.

use super::error::DecodeProblem;
use super::scalar::Write;
use super::types::PgType;

/// The length that stands for a NULL element.
const NULL: i32 = -1;

/// The elements of an array, each `None` for a NULL.
#[derive(Debug)]
pub(super) struct Elements<'row> {
    rest: &'row [u8],
    left: usize,
}

impl<'row> Elements<'row> {
    /// Checks the head of an array whose elements must be of one of the types `accepted`.
    pub(super) fn new(bytes: &'row [u8], accepted: &[PgType]) -> Result<Self, DecodeProblem> {
        let mut rest = bytes;
        let dimensions = take_i32(&mut rest)?;
        let has_null = take_i32(&mut rest)?;
        let element = take_i32(&mut rest)?.cast_unsigned();
        if !matches!(has_null, 0 | 1) {
            return Err(DecodeProblem::Malformed("the NULL flag of the array is neither 0 nor 1"));
        }
        if !accepted.iter().any(|known| known.oid() == element) {
            return Err(DecodeProblem::OtherType(element));
        }
        let left = match dimensions {
            0 => 0,
            1 => {
                let length = take_i32(&mut rest)?;
                take_i32(&mut rest)?;
                usize::try_from(length).map_err(|_| DecodeProblem::Malformed("the array has a negative length"))?
            }
            _ => return Err(DecodeProblem::Malformed("the array has not one dimension")),
        };
        // Every element takes at least the four bytes of its length, so a length that the bytes cannot hold is
        // refused before anything is allocated for it.
        if left > rest.len() / size_of::<i32>() {
            return Err(DecodeProblem::Malformed("the array is longer than its bytes"));
        }
        if left == 0 && !rest.is_empty() {
            return Err(DecodeProblem::Malformed("bytes follow the last element"));
        }
        Ok(Self { rest, left })
    }

    fn take(&mut self) -> Result<Option<&'row [u8]>, DecodeProblem> {
        let element = match take_i32(&mut self.rest)? {
            NULL => None,
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| DecodeProblem::Malformed("an element has a negative length"))?;
                let (element, rest) = self
                    .rest
                    .split_at_checked(length)
                    .ok_or(DecodeProblem::Malformed("an element is longer than the array"))?;
                self.rest = rest;
                Some(element)
            }
        };
        if self.left == 1 && !self.rest.is_empty() {
            return Err(DecodeProblem::Malformed("bytes follow the last element"));
        }
        Ok(element)
    }
}

impl<'row> Iterator for Elements<'row> {
    type Item = Result<Option<&'row [u8]>, DecodeProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let element = self.take();
        self.left = if element.is_err() { 0 } else { self.left - 1 };
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl Elements<'_> {
    /// How many elements are still to come, bounded by the bytes that are there.
    pub(super) fn left(&self) -> usize {
        self.left
    }
}

/// Appends an array with elements of the type `element`.
///
/// # Panics
/// When the array or an element is longer than the wire format can say, two thousand million bytes.
pub(super) fn write<W: Write>(out: &mut Vec<u8>, element: PgType, values: impl ExactSizeIterator<Item = Option<W>>) {
    let count = values.len();
    put(out, i32::from(count != 0));
    let flag = out.len();
    put(out, 0);
    put(out, element.oid().cast_signed());
    if count == 0 {
        return;
    }
    put(out, length(count));
    put(out, 1);
    for value in values {
        let head = out.len();
        put(out, NULL);
        if let Some(value) = value {
            value.write(out);
            let written = length(out.len() - head - size_of::<i32>());
            out[head..head + size_of::<i32>()].copy_from_slice(&written.to_be_bytes());
        } else {
            out[flag..flag + size_of::<i32>()].copy_from_slice(&1_i32.to_be_bytes());
        }
    }
}

fn put(out: &mut Vec<u8>, number: i32) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn length(length: usize) -> i32 {
    i32::try_from(length).expect("a parameter is shorter than 2 GiB, which the limits on batches and payloads ensure")
}

fn take_i32(rest: &mut &[u8]) -> Result<i32, DecodeProblem> {
    let (head, tail) = rest.split_first_chunk().ok_or(DecodeProblem::Malformed("the array ends early"))?;
    *rest = tail;
    Ok(i32::from_be_bytes(*head))
}
