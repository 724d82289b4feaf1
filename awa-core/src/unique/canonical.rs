//! One spelling for each JSON value, as the documentation of [`unique`](super) describes it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::refused;
use crate::error::BadInput;

/// The deepest nesting that is compared.
const MAX_DEPTH: usize = 127;

/// The canonical text of a JSON text. Works on the text and not on a tree of values, because a tree keeps numbers as
/// floating point, which are not exact.
pub(super) fn write(json: &str) -> Result<String, BadInput> {
    let mut text = String::new();
    append(read::<&RawValue>(json)?, 0, &mut text)?;
    Ok(text)
}

/// The canonical texts of the members of a JSON object, or `None` when it is no object.
pub(super) fn members(json: &str) -> Result<Option<BTreeMap<String, String>>, BadInput> {
    if !read::<&RawValue>(json)?.get().starts_with('{') {
        return Ok(None);
    }
    let members = read::<BTreeMap<String, &RawValue>>(json)?;
    let write = |(name, member): (String, &RawValue)| Ok((name, write(member.get())?));
    members.into_iter().map(write).collect::<Result<_, _>>().map(Some)
}

/// An object of members that are canonical already.
pub(super) fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m str)>) -> String {
    let members: Vec<_> = members.into_iter().map(|(name, member)| format!("{}:{member}", quoted(name))).collect();
    format!("{{{}}}", members.join(","))
}

fn read<'t, T: serde::Deserialize<'t>>(json: &'t str) -> Result<T, BadInput> {
    serde_json::from_str(json).map_err(|error| refused(format!("the arguments cannot be compared: {error}")))
}

fn append(value: &RawValue, depth: usize, text: &mut String) -> Result<(), BadInput> {
    if depth > MAX_DEPTH {
        return Err(refused(format!(
            "the arguments cannot be compared: they are nested deeper than {MAX_DEPTH} levels"
        )));
    }
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'{') => {
            text.push('{');
            for (index, (name, member)) in read::<BTreeMap<String, &RawValue>>(json)?.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&quoted(&name));
                text.push(':');
                append(member, depth + 1, text)?;
            }
            text.push('}');
        }
        Some(b'[') => {
            text.push('[');
            for (index, element) in read::<Vec<&RawValue>>(json)?.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                append(element, depth + 1, text)?;
            }
            text.push(']');
        }
        Some(b'"') => text.push_str(&quoted(&read::<String>(json)?)),
        Some(b't' | b'f' | b'n') => text.push_str(json),
        _ => text.push_str(&decimal(json)?),
    }
    Ok(())
}

pub(super) fn quoted(string: &str) -> String {
    serde_json::to_string(string).expect("every string has a JSON text")
}

/// The exact value of a number, of however many digits.
fn decimal(text: &str) -> Result<String, BadInput> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |unsigned| ("-", unsigned));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Ok("0".to_owned());
    }
    let too_large = || refused(format!("the power of ten of the number {text:.40} is too large to be compared"));
    let written: i64 = exponent.parse().map_err(|_| too_large())?;
    let zeros_behind = digits.len() - digits.trim_end_matches('0').len();
    let shift = i64::try_from(zeros_behind).unwrap_or(i64::MAX) - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    match written.checked_add(shift).filter(|power| power.unsigned_abs() < 1_000_000_000_000_000_000) {
        Some(0) => Ok(format!("{sign}{significant}")),
        Some(power) => Ok(format!("{sign}{significant}e{power}")),
        None => Err(too_large()),
    }
}
