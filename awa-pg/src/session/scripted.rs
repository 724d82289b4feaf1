//! A session that plays back prepared answers and keeps what it was asked.

use std::collections::VecDeque;

use async_trait::async_trait;

use super::{PgError, Session, Statement};
use crate::value::{Param, Row};

/// A session for unit tests: answers come from a queue, one per call, and an empty queue answers with no rows.
#[derive(Debug, Default)]
pub(crate) struct ScriptedSession {
    /// The answers still to give.
    pub(crate) answers: VecDeque<Result<Vec<Row>, PgError>>,
    /// The text of every call in order.
    pub(crate) asked: Vec<String>,
    /// Whether the session was abandoned.
    pub(crate) abandoned: bool,
}

impl ScriptedSession {
    /// A session that gives `answers` in order.
    pub(crate) fn answering(answers: impl IntoIterator<Item = Result<Vec<Row>, PgError>>) -> Self {
        Self { answers: answers.into_iter().collect(), ..Self::default() }
    }

    fn answer(&mut self, text: &str) -> Result<Vec<Row>, PgError> {
        self.asked.push(text.to_owned());
        self.answers.pop_front().unwrap_or_else(|| Ok(Vec::new()))
    }
}

#[async_trait]
impl Session for ScriptedSession {
    async fn query(&mut self, statement: &Statement, _params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        self.answer(&statement.text)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        self.answer(sql).map(|_| ())
    }

    fn abandon(&mut self) {
        self.abandoned = true;
    }
}
