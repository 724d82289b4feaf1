//! Marks, blocks and instances: from the text of a file to SQL for one schema.

use std::fmt::Write as _;

use super::rings::{Ring, RingSizes};
use crate::schema_name::SchemaName;

/// A file under `sql/` that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sql/{path}.sql{}: {problem}", .line.map(|line| format!(" line {line}")).unwrap_or_default())]
pub struct TemplateError {
    /// The path under `sql/` without the ending.
    pub path: String,
    /// The line, from one, when the fault is on one line.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

impl TemplateError {
    pub(super) fn new(path: &str, line: Option<usize>, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, problem: problem.into() }
    }
}

/// What a file becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rendered<T> {
    /// One text.
    Once(T),
    /// A text for each slot of a ring, in order.
    PerSlot(Vec<T>),
}

impl<T> Rendered<T> {
    /// The same with `change` applied to each text, which is also given its slot.
    pub(super) fn map<U>(self, change: impl Fn(Option<u8>, T) -> U) -> Rendered<U> {
        match self {
            Self::Once(text) => Rendered::Once(change(None, text)),
            Self::PerSlot(texts) => {
                Rendered::PerSlot(texts.into_iter().zip(0..).map(|(text, slot)| change(Some(slot), text)).collect())
            }
        }
    }

    /// The texts in order.
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Self::Once(text) => std::slice::from_ref(text),
            Self::PerSlot(texts) => texts,
        }
    }

    /// The same.
    pub(super) fn into_vec(self) -> Vec<T> {
        match self {
            Self::Once(text) => vec![text],
            Self::PerSlot(texts) => texts,
        }
    }
}

/// What marks are replaced by.
#[derive(Debug)]
pub(super) struct Template {
    identifier: String,
    literal: String,
    member_literal: String,
    rings: RingSizes,
}

/// The slots that a piece of text is for, the innermost last.
type Scope = Vec<(Ring, u8)>;

/// A line with its number, from one.
type Line<'t> = (usize, &'t str);

impl Template {
    pub(super) fn new(schema: &SchemaName, rings: RingSizes) -> Self {
        Self {
            identifier: schema.quoted(),
            literal: schema.quoted_text(),
            member_literal: schema.quoted_text_of_member(),
            rings,
        }
    }

    /// Renders a file once, or once per slot when its header says so.
    pub(super) fn render(&self, path: &str, text: &str) -> Result<Rendered<String>, TemplateError> {
        let lines: Vec<Line<'_>> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
        let render_in = |mut scope: Scope| {
            let mut sql = String::with_capacity(text.len());
            self.lines(&lines, &mut scope, &mut sql)
                .map(|()| sql)
                .map_err(|(line, problem)| TemplateError::new(path, Some(line), problem))
        };
        let Some(ring) = header_value(text, "per slot of") else {
            return render_in(Vec::new()).map(Rendered::Once);
        };
        let ring = ring.strip_suffix(" ring").and_then(Ring::by_name);
        let ring = ring.ok_or_else(|| TemplateError::new(path, None, "\"per slot of\" names no ring"))?;
        let texts = (0..self.rings.of(ring)).map(|slot| render_in(vec![(ring, slot)]));
        texts.collect::<Result<_, _>>().map(Rendered::PerSlot)
    }

    fn lines(&self, lines: &[Line<'_>], scope: &mut Scope, sql: &mut String) -> Result<(), (usize, String)> {
        let mut rest = lines;
        while let [(number, line), tail @ ..] = rest {
            rest = tail;
            match Marker::of(line).map_err(|problem| (*number, problem))? {
                None => {
                    self.marks(line, scope, sql).map_err(|problem| (*number, problem))?;
                    sql.push('\n');
                }
                Some(Marker::End) => return Err((*number, "there is no block to end".to_owned())),
                Some(Marker::Each(ring)) => {
                    if scope.iter().any(|(outer, _)| *outer == ring) {
                        return Err((*number, format!("a {ring} slot is in scope already")));
                    }
                    let length = block_length(tail).ok_or((*number, "the block has no end".to_owned()))?;
                    for slot in 0..self.rings.of(ring) {
                        scope.push((ring, slot));
                        self.lines(&tail[..length], scope, sql)?;
                        scope.pop();
                    }
                    rest = &tail[length + 1..];
                }
            }
        }
        Ok(())
    }

    /// Appends one line with its marks replaced.
    fn marks(&self, line: &str, scope: &Scope, sql: &mut String) -> Result<(), String> {
        let mut rest = line;
        while let Some(start) = rest.find("/*") {
            let (head, tail) = rest.split_at(start);
            let end = tail.find("*/").ok_or("a block comment must be a mark, and end on its line")?;
            let (mark, tail) = (&tail[2..end], &tail[end + 2..]);
            rest = match mark {
                "schema" => self.schema(head, tail, sql)?,
                "slot" => {
                    let (_, slot) = scope.last().ok_or("no slot is in scope")?;
                    slot_number(head, tail, *slot, sql)?
                }
                _ if mark.ends_with(" slot") => {
                    let ring = mark.strip_suffix(" slot").and_then(Ring::by_name);
                    let ring = ring.ok_or_else(|| format!("/*{mark}*/ names no ring"))?;
                    let slot = scope.iter().find(|(outer, _)| *outer == ring);
                    let (_, slot) = slot.ok_or_else(|| format!("no {ring} slot is in scope"))?;
                    slot_number(head, tail, *slot, sql)?
                }
                _ if mark.ends_with(" slots") => {
                    let ring = mark.strip_suffix(" slots").and_then(Ring::by_name);
                    let ring = ring.ok_or_else(|| format!("/*{mark}*/ names no ring"))?;
                    slot_count(head, tail, self.rings.of(ring), sql)?
                }
                _ => return Err(format!("/*{mark}*/ is no mark; write comments with two dashes")),
            };
        }
        sql.push_str(rest);
        Ok(())
    }

    /// Replaces `awa` after the mark, with the quotes around it when it is in quotes.
    fn schema<'t>(&self, head: &str, tail: &'t str, sql: &mut String) -> Result<&'t str, String> {
        let tail = tail.strip_prefix("awa").ok_or("/*schema*/ must stand before awa")?;
        if head.ends_with('"') || continues_a_name(tail) {
            return Err("/*schema*/awa must be a whole name".to_owned());
        }
        let Some(before_quote) = head.strip_suffix('\'') else {
            sql.push_str(head);
            sql.push_str(&self.identifier);
            return Ok(tail);
        };
        sql.push_str(before_quote);
        if let Some(tail) = tail.strip_prefix('\'') {
            sql.push_str(&self.literal);
            return Ok(tail);
        }
        let member = tail.strip_prefix('.').ok_or("'/*schema*/awa must be a whole literal or the schema of a name")?;
        sql.push_str(&self.member_literal);
        Ok(member)
    }
}

/// The value of a line `-- key: value` in the comment that a file begins with.
pub(super) fn header_value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let header = text.lines().map_while(|line| line.strip_prefix("--"));
    header.filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':')).map(str::trim).next()
}

/// A line that begins or ends a block.
enum Marker {
    Each(Ring),
    End,
}

impl Marker {
    fn of(line: &str) -> Result<Option<Self>, String> {
        let Some(comment) = line.trim().strip_prefix("--").map(str::trim) else { return Ok(None) };
        if comment == "end each" {
            return Ok(Some(Self::End));
        }
        let Some(ring) = comment.strip_prefix("each ").and_then(|rest| rest.strip_suffix(" slot:")) else {
            return Ok(None);
        };
        Ring::by_name(ring).map(Self::Each).map(Some).ok_or_else(|| format!("there is no {ring} ring"))
    }
}

/// How many lines stand before the end of the block that these lines are in.
fn block_length(lines: &[Line<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, (_, line)) in lines.iter().enumerate() {
        match Marker::of(line) {
            Ok(Some(Marker::Each(_))) => depth += 1,
            Ok(Some(Marker::End)) if depth == 0 => return Some(index),
            Ok(Some(Marker::End)) => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Replaces the `0` before a mark by the number of the slot.
fn slot_number<'t>(head: &str, tail: &'t str, slot: u8, sql: &mut String) -> Result<&'t str, String> {
    let head = head.strip_suffix('0').filter(|head| !head.ends_with(|c: char| c.is_ascii_digit()));
    let head = head.ok_or("the mark of a slot must stand after the number 0")?;
    number(head, tail, slot, sql)
}

/// Replaces the digits before a mark by the number of slots.
fn slot_count<'t>(head: &str, tail: &'t str, slots: u8, sql: &mut String) -> Result<&'t str, String> {
    let before = head.trim_end_matches(|c: char| c.is_ascii_digit());
    if before.len() == head.len() || before.ends_with(|c: char| c == '_' || c.is_alphanumeric()) {
        return Err("the mark of a number of slots must stand after a number".to_owned());
    }
    number(before, tail, slots, sql)
}

fn number<'t>(head: &str, tail: &'t str, number: u8, sql: &mut String) -> Result<&'t str, String> {
    if continues_a_name(tail) {
        return Err("a mark ends the name or number that it stands after, as in jobs_by_lane_0/*slot*/".to_owned());
    }
    write!(sql, "{head}{number}").expect("a string takes any text");
    Ok(tail)
}

fn continues_a_name(tail: &str) -> bool {
    tail.starts_with(|c: char| c == '_' || c.is_alphanumeric())
}
