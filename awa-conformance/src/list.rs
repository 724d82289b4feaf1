//! The list of all cases, in one place: the suite is made from it, and a test holds it against the source files.

/// Makes one test per case, in one module per topic.
///
/// `suite!(TEST_ATTRIBUTE, SUBJECT)`: the attribute makes a test of an `async fn` (`tokio::test`), the expression is
/// evaluated in each test and its future gives a fresh [`Subject`](crate::Subject).
#[macro_export]
macro_rules! suite {
    ($test:meta, $subject:expr) => {
        $crate::each_case! { __suite_tests ($test) ($subject) }
    };
}

/// Hands the list of all cases to `$crate::CALLBACK!`, after the given tokens.
#[doc(hidden)]
#[macro_export]
macro_rules! each_case {
    ($callback:ident $($before:tt)*) => {
        $crate::$callback! { $($before)*
            enqueue {
                ids_rise_with_the_order_of_the_input [];
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __suite_tests {
    ($test:tt $subject:tt $($topic:ident { $($cases:tt)* })*) => {
        $( $crate::__suite_topic! { $test $subject $topic { $($cases)* } } )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __suite_topic {
    (($test:meta) ($subject:expr) $topic:ident { $($case:ident [$($need:ident),*];)* }) => {
        mod $topic {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[$test]
                async fn $case() {
                    let subject = $subject.await;
                    let body = $crate::cases::$topic::$case(&subject);
                    let name = concat!(stringify!($topic), "::", stringify!($case));
                    $crate::run_case(&subject, name, &[$($crate::Capability::$need),*], body).await.report();
                }
            )*
        }
    };
}

/// The names of all cases, as `topic::case`.
#[doc(hidden)]
#[macro_export]
macro_rules! __case_names {
    ($($topic:ident { $($case:ident [$($need:ident),*];)* })*) => {
        [$($(concat!(stringify!($topic), "::", stringify!($case)),)*)*]
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_case_in_the_sources_is_on_the_list_once() {
        let list = crate::each_case! { __case_names };
        let listed: BTreeSet<String> = list.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(listed.len(), list.len(), "a case is listed twice");
        let mut written = BTreeSet::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cases");
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let topic = path.file_stem().unwrap().to_str().unwrap().to_owned();
            for line in fs::read_to_string(&path).unwrap().lines() {
                if let Some(rest) = line.strip_prefix("pub async fn ") {
                    written.insert(format!("{topic}::{}", rest.split('(').next().unwrap()));
                }
            }
        }
        assert_eq!(listed, written);
    }
}
