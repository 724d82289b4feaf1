use crate::job::Priority;
use crate::name::QueueName;

/// Where jobs are to be moved: into another queue, to another priority, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveTo {
    queue: Option<QueueName>,
    priority: Option<Priority>,
}

impl MoveTo {
    /// Into another queue.
    pub const fn queue(queue: QueueName) -> Self {
        Self { queue: Some(queue), priority: None }
    }

    /// To another priority.
    pub const fn priority(priority: Priority) -> Self {
        Self { queue: None, priority: Some(priority) }
    }

    /// To another priority as well.
    #[must_use]
    pub fn and_priority(self, priority: Priority) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// The queue, unless it stays.
    pub const fn new_queue(&self) -> Option<&QueueName> {
        self.queue.as_ref()
    }

    /// The priority, unless it stays.
    pub const fn new_priority(&self) -> Option<Priority> {
        self.priority
    }
}
