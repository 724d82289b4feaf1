//! What a run is asked for.

use std::time::Duration;

use super::{Failure, Scene};

/// A run: which scenes, for how long, from which seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// How long all scenes together may do harm and heal.
    pub length: Duration,
    /// Repeats the numbers of a run.
    pub seed: Option<u64>,
    /// The scenes, in their order.
    pub scenes: Vec<Scene>,
}

/// How the program is called.
pub const USAGE: &str = "\
Usage: cargo xtask chaos [--minutes N] [--seed S] [--scenes A,B,..]

Kills, stops and cuts off real workers and servers under load, and counts afterwards. Prints a line per scene.

  --minutes N   how long all scenes together may take, 1 to 1440; 2 unless told. With more time the scenes are played
                again, from other seeds, and longer
  --seed S      the seed of a run or of a scene, to play it again as far as processes repeat themselves
  --scenes ..   some scenes only, by the names in the table";

impl Arguments {
    /// Reads the arguments of the program.
    ///
    /// # Errors
    ///
    /// What is not understood.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let mut arguments = Self { length: Duration::from_mins(2), seed: None, scenes: Scene::ALL.to_vec() };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--minutes" => {
                    let minutes: u64 = value()?.parse().map_err(|_| "--minutes needs a number")?;
                    if !(1..=1440).contains(&minutes) {
                        return Err("--minutes takes 1 to 1440".into());
                    }
                    arguments.length = Duration::from_mins(minutes);
                }
                "--seed" => arguments.seed = Some(value()?.parse().map_err(|_| "--seed needs a number")?),
                "--scenes" => {
                    arguments.scenes = value()?.split(',').map(Scene::named).collect::<Result<_, _>>()?;
                }
                _ => return Err(format!("{word} is not understood").into()),
            }
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, Failure> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let arguments = parse("--minutes 10 --seed 7 --scenes clock-off,pool-of-one").unwrap();
        assert_eq!((arguments.length, arguments.seed), (Duration::from_mins(10), Some(7)));
        assert_eq!(arguments.scenes, [Scene::ClockOff, Scene::PoolOfOne]);
        assert_eq!(parse("").unwrap().scenes, Scene::ALL);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in ["--minutes", "--minutes 0", "--minutes x", "--seed -1", "--scenes peace", "now"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
