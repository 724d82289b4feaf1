//! The implementation that the derive macro writes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Result, parse_quote};

use crate::attributes::JobAttributes;

/// `impl Job` for `input`.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if let Data::Union(data) = &input.data {
        return Err(Error::new(data.union_token.span(), "a union cannot be a job; use a struct or an enum"));
    }
    if !input.generics.params.is_empty() {
        let problem = "a job has no generic parameters: one kind stands for one type; wrap each concrete type in a \
                       struct of its own";
        return Err(Error::new(input.generics.span(), problem));
    }
    let JobAttributes { kind, queue, priority, max_attempts, runtime } = JobAttributes::of(input)?;
    let runtime = runtime.unwrap_or_else(|| parse_quote!(::awa_runtime));
    let queue = queue.map(|queue| quote!(const QUEUE: &'static str = #queue;));
    let priority = priority.map(|priority| quote!(const PRIORITY: i16 = #priority;));
    let max_attempts = max_attempts.map(|max_attempts| quote!(const MAX_ATTEMPTS: i64 = #max_attempts;));
    let (name, where_clause) = (&input.ident, &input.generics.where_clause);
    Ok(quote! {
        #[automatically_derived]
        impl #runtime::Job for #name #where_clause {
            const KIND: &'static str = #kind;
            #queue
            #priority
            #max_attempts
        }
    })
}
