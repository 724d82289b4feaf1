//! Tells one history to several stores side by side, and stops where they differ.

use std::any::Any;
use std::fmt::{self, Write as _};
use std::panic::AssertUnwindSafe;

use awa_conformance::Subject;
use futures::FutureExt;

use super::player::Player;
use super::step::Step;

/// So often everything is looked at, and at the end.
const LOOK_EVERY: usize = 10;

/// What was told, as a reader would write it down.
#[derive(Clone, Debug, Default)]
pub struct Told(Vec<String>);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.0.iter().enumerate() {
            writeln!(f, "{:>4}. {line}", number + 1)?;
        }
        Ok(())
    }
}

/// Where two stores differ, and what led there.
#[derive(Clone, Debug)]
pub struct Difference {
    told: Told,
    what: String,
}

impl Difference {
    /// How many steps led there.
    pub fn steps(&self) -> usize {
        self.told.0.len()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.told, self.what)
    }
}

/// Tells the history to each store, step by step.
///
/// # Errors
///
/// The first difference from the first of them, or the first failure: a store that fails or contradicts itself.
pub async fn tell(subjects: &[&dyn Subject], steps: &[Step]) -> Result<Told, Difference> {
    let mut players = Vec::new();
    for subject in subjects {
        players.push(Player::new(*subject).await);
    }
    let mut told = Told::default();
    for (number, step) in steps.iter().enumerate() {
        let is_looked_at = number % LOOK_EVERY == LOOK_EVERY - 1 || number + 1 == steps.len();
        told.0.push(players[0].said(step));
        let compared = AssertUnwindSafe(compare(&mut players, step, is_looked_at, &mut told)).catch_unwind().await;
        if let Err(what) = compared.unwrap_or_else(|panic| Err(message(panic.as_ref()))) {
            return Err(Difference { told, what });
        }
    }
    for player in &mut players {
        player.leave().await;
    }
    Ok(told)
}

/// Takes one step with each store.
async fn compare(players: &mut [Player<'_>], step: &Step, is_looked_at: bool, told: &mut Told) -> Result<(), String> {
    let (first, others) = players.split_first_mut().expect("there is a store to begin with");
    let expected = first.play(step).await;
    let line = told.0.last_mut().expect("the step was noted");
    write!(line, " -> {expected:?}").expect("a text takes everything");
    for other in &mut *others {
        let answered = other.play(step).await;
        if answered != expected {
            return Err(format!("{} answers this step with\n    {answered:?}", other.name()));
        }
    }
    if is_looked_at {
        let expected = first.look().await;
        for other in others {
            let seen = other.look().await;
            if let Some(difference) = expected.difference(&seen) {
                return Err(format!("after this, for {} and {}, {difference}", first.name(), other.name()));
            }
        }
    }
    Ok(())
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a store fails in this step: {}", text.unwrap_or("without a word"))
}
