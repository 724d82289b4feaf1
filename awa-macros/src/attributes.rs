//! What `#[job(..)]` says, checked by the rules of the core and reported where it stands.

use awa_core::job::MaxAttempts;
use awa_core::{BadInput, JobKind, Priority, QueueName};
use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, DeriveInput, Error, Expr, ExprLit, Lit, LitInt, LitStr, Path, Result};

/// The checked content of all `#[job(..)]` attributes of one type. What was left out is `None`: the trait's defaults
/// apply.
pub(crate) struct JobAttributes {
    pub(crate) kind: LitStr,
    pub(crate) queue: Option<LitStr>,
    pub(crate) priority: Option<LitInt>,
    pub(crate) max_attempts: Option<LitInt>,
    pub(crate) runtime: Option<Path>,
}

impl JobAttributes {
    /// Reads the attributes of `input`.
    pub(crate) fn of(input: &DeriveInput) -> Result<Self> {
        let mut found = Found::default();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("job")) {
            found.read(attribute)?;
        }
        let Some(kind) = found.kind else {
            let problem = "a job needs a kind; add #[job(kind = \"send_email\")]";
            return Err(Error::new(found.at.unwrap_or_else(|| input.ident.span()), problem));
        };
        Ok(Self {
            kind,
            queue: found.queue,
            priority: found.priority,
            max_attempts: found.max_attempts,
            runtime: found.runtime,
        })
    }
}

#[derive(Default)]
struct Found {
    /// Where the first attribute stands.
    at: Option<Span>,
    kind: Option<LitStr>,
    queue: Option<LitStr>,
    priority: Option<LitInt>,
    max_attempts: Option<LitInt>,
    runtime: Option<Path>,
}

impl Found {
    fn read(&mut self, attribute: &Attribute) -> Result<()> {
        self.at.get_or_insert_with(|| attribute.span());
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("kind") {
                let text = string(&meta)?;
                checked(&text, JobKind::new(text.value()))?;
                once(&meta, &mut self.kind, text)
            } else if meta.path.is_ident("queue") {
                let text = string(&meta)?;
                checked(&text, QueueName::new(text.value()))?;
                once(&meta, &mut self.queue, text)
            } else if meta.path.is_ident("priority") {
                let number = integer(&meta)?;
                checked(&number, Priority::new(parsed(&number, "priority")?))?;
                once(&meta, &mut self.priority, number)
            } else if meta.path.is_ident("max_attempts") {
                let number = integer(&meta)?;
                checked(&number, MaxAttempts::new(parsed(&number, "max_attempts")?))?;
                once(&meta, &mut self.max_attempts, number)
            } else if meta.path.is_ident("crate") {
                let path = meta.value()?.parse()?;
                once(&meta, &mut self.runtime, path)
            } else {
                Err(meta.error("unknown attribute; a job has kind, queue, priority, max_attempts and crate"))
            }
        })
    }
}

/// Stores `value`, unless the attribute was given before.
fn once<T>(meta: &ParseNestedMeta<'_>, place: &mut Option<T>, value: T) -> Result<()> {
    if place.replace(value).is_some() {
        return Err(meta.error("given twice; keep one"));
    }
    Ok(())
}

/// The refusal of the core, at the place of `value`.
fn checked<T>(value: &impl Spanned, outcome: std::result::Result<T, BadInput>) -> Result<()> {
    outcome.map(drop).map_err(|refusal| Error::new(value.span(), refusal.to_string()))
}

fn parsed<N: std::str::FromStr>(number: &LitInt, field: &str) -> Result<N> {
    number
        .base10_digits()
        .parse()
        .map_err(|_| Error::new(number.span(), format!("{field} refused: {number} is too large")))
}

fn string(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    match meta.value()?.parse()? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        other => Err(Error::new(other.span(), "expected a string literal: names are checked at compile time")),
    }
}

fn integer(meta: &ParseNestedMeta<'_>) -> Result<LitInt> {
    match meta.value()?.parse()? {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => Ok(number),
        other => Err(Error::new(other.span(), "expected a plain positive integer literal, such as 2")),
    }
}
