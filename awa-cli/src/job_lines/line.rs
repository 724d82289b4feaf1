//! One line of `jobs.jsonl`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use awa_core::job::MaxAttempts;
use awa_core::{BadInput, JobKind, JsonText, NewJob, OrderingKey, Priority, QueueName, RunAt, Unique, UniqueBy};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::length::parse_moment;

/// What holds for every line that does not say otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    pub(crate) queue: Option<QueueName>,
    pub(crate) kind: Option<JobKind>,
    pub(crate) priority: Priority,
    pub(crate) run_at: RunAt,
    pub(crate) max_attempts: MaxAttempts,
}

/// Why a line makes no job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) field: Cow<'static, str>,
    pub(super) problem: String,
}

impl From<BadInput> for Refusal {
    fn from(refusal: BadInput) -> Self {
        Self { field: refusal.field.into(), problem: refusal.problem }
    }
}

fn refuse<T>(field: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { field: field.into(), problem: problem.into() })
}

impl Defaults {
    /// A job with these arguments and nothing else said.
    pub(crate) fn job(&self, args: JsonText) -> Result<NewJob, BadInput> {
        let missing = |field, flag| BadInput::new(field, format!("it is missing; give it in the line or by {flag}"));
        let queue = self.queue.clone().ok_or_else(|| missing("queue", "--queue"))?;
        let kind = self.kind.clone().ok_or_else(|| missing("kind", "--kind"))?;
        Ok(NewJob::new(queue, kind, args)
            .with_priority(self.priority)
            .with_run_at(self.run_at)
            .with_max_attempts(self.max_attempts))
    }

    /// `job`, to exist only once as long as no job with this key has ended.
    pub(crate) fn keyed(job: NewJob, key: &str) -> Result<NewJob, BadInput> {
        let key = UniqueBy::text(key).key_of(&job).map_err(|bad| BadInput::new("unique_key", bad.problem))?;
        Ok(job.with_unique(Unique::new(key)))
    }

    /// The job of one line.
    pub(super) fn job_of(&self, text: &str) -> Result<NewJob, Refusal> {
        let members: Members<'_> = match serde_json::from_str(text) {
            Ok(members) => members,
            Err(error) => return refuse("line", format!("it is not a JSON object: {error}")),
        };
        let mut defaults = self.clone();
        let (mut args, mut metadata, mut start, mut key, mut order) = (None, None, None, None, None);
        let mut seen: Vec<&str> = Vec::with_capacity(members.0.len());
        for (name, value) in &members.0 {
            let name = name.as_str();
            if seen.contains(&name) {
                return refuse(name.to_owned(), "it is given twice; keep one");
            }
            seen.push(name);
            match name {
                "args" => args = Some(JsonText::new("args", value.get())?),
                "metadata" => metadata = Some(JsonText::new("metadata", value.get())?),
                "unique_key" => key = Some(decoded::<String>("unique_key", value)?),
                "ordering_key" => order = Some(OrderingKey::new(decoded::<String>("ordering_key", value)?)?),
                "queue" => defaults.queue = Some(QueueName::new(decoded::<String>("queue", value)?)?),
                "kind" => defaults.kind = Some(JobKind::new(decoded::<String>("kind", value)?)?),
                "priority" => defaults.priority = Priority::new(decoded("priority", value)?)?,
                "max_attempts" => defaults.max_attempts = MaxAttempts::new(decoded("max_attempts", value)?)?,
                "run_at" | "delay_s" if start.is_some() => {
                    return refuse(name.to_owned(), "run_at and delay_s exclude each other; keep one");
                }
                "run_at" => start = Some(moment(value)?),
                "delay_s" => start = Some(delay(value)?),
                unknown => return refuse(unknown.to_owned(), format!("there is no such field; a line has {FIELDS}")),
            }
        }
        let Some(args) = args else { return refuse("args", "it is missing") };
        defaults.run_at = start.unwrap_or(self.run_at);
        let job = defaults.job(args)?;
        let job = match metadata {
            Some(metadata) => job.with_metadata(metadata),
            None => job,
        };
        let job = match order {
            Some(order) => job.with_ordering_key(order),
            None => job,
        };
        Ok(match key {
            Some(key) => Self::keyed(job, &key)?,
            None => job,
        })
    }
}

const FIELDS: &str =
    "args, queue, kind, priority, run_at or delay_s, max_attempts, metadata, unique_key and ordering_key";

fn decoded<'a, T: Deserialize<'a>>(field: &'static str, value: &'a RawValue) -> Result<T, Refusal> {
    serde_json::from_str(value.get()).or_else(|error| {
        // The place that serde names is one inside the value, which nobody sees by itself.
        let problem = error.to_string();
        refuse(field, problem.split(" at line ").next().unwrap_or_default())
    })
}

fn moment(value: &RawValue) -> Result<RunAt, Refusal> {
    let text: String = decoded("run_at", value)?;
    parse_moment(&text).or_else(|problem| refuse("run_at", problem)).and_then(|at| Ok(RunAt::at(at)?))
}

fn delay(value: &RawValue) -> Result<RunAt, Refusal> {
    let seconds: f64 = decoded("delay_s", value)?;
    let Ok(delay) = Duration::try_from_secs_f64(seconds) else {
        return refuse("delay_s", format!("{seconds} is no number of seconds from 0 on"));
    };
    RunAt::after(delay).or_else(|refusal| refuse("delay_s", refusal.problem))
}

/// The members of an object in their order, each value as it is written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the fields of a job")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                // The line's length bounds the number of members.
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
