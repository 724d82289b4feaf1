//! The derive macro of Awa's typed jobs. Use it through `awa-runtime`, which re-exports it next to the trait.

mod attributes;
mod derive;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct or an enum a typed job: implements `awa_runtime::Job` with what `#[job(..)]` says.
///
/// | attribute | value | unless told |
/// |---|---|---|
/// | `kind` | the name by which a worker finds the handler; say it, so that renaming the type renames no stored job | required |
/// | `queue` | the queue | `"default"` |
/// | `priority` | 1 (urgent) to 4 (bulk) | 2 |
/// | `max_attempts` | the budget of charged attempts, 1 to 32,767 | 25 |
/// | `crate` | the path of `awa_runtime`, for crates that re-export it | `::awa_runtime` |
///
/// The type must implement `serde::Serialize` and `serde::Deserialize` itself. Values are checked at compile time by
/// the rules that hold at run time. Types with generic parameters are refused: one kind stands for one type.
///
/// ```ignore
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(kind = "send_email", queue = "email", max_attempts = 5)]
/// struct SendEmail { to: String, subject: String }
/// ```
#[proc_macro_derive(Job, attributes(job))]
pub fn derive_job(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
