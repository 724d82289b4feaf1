//! One spelling for each JSON value, as the documentation of [`unique`](super) describes it.

use serde_json::{Number, Value};

use super::refused;
use crate::error::BadInput;

/// The canonical text of `value`.
pub(super) fn write(value: &Value) -> Result<String, BadInput> {
    let mut text = String::new();
    append(value, &mut text)?;
    Ok(text)
}

fn append(value: &Value, text: &mut String) -> Result<(), BadInput> {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&decimal(number)?),
        Value::String(string) => text.push_str(&quoted(string)),
        Value::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                append(element, text)?;
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&quoted(name));
                text.push(':');
                append(member, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

fn quoted(string: &str) -> String {
    serde_json::to_string(string).expect("every string has a JSON text")
}

/// The exact value of a number, of however many digits.
fn decimal(number: &Number) -> Result<String, BadInput> {
    let text = number.to_string();
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text.as_str()), |unsigned| ("-", unsigned));
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
