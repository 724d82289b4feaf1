//! Taking in jobs.

use crate::Subject;
use crate::scene::{Scene, job, labels};

/// C8: answers come in input order, and ids rise with it. Guards against ids assumed contiguous or handed out out of
/// order between paths (bug class 29).
pub async fn ids_rise_with_the_order_of_the_input(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let first = scene.enqueue(&[job("email", "a"), job("email", "b"), job("email", "c")]).await;
    let second = scene.enqueue(&[job("email", "d")]).await;
    let ids = [first, second].concat();
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    assert_eq!(labels(&scene.claim("email", 10).await), ["a", "b", "c", "d"]);
}
