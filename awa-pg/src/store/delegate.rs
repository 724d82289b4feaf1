//! Handing the storage traits through to a [`PgStore`](super::PgStore) inside an adapter's own type.

/// Implements the storage traits for `$store` by its field `$field`, which must be a
/// [`PgStore`](crate::store::PgStore), and gives it the calls about the schema as methods of its own; `$rings` is the field
/// with the [`RingSizes`](crate::sql::RingSizes) of a new schema. An adapter needs `async-trait` among its dependencies.
#[macro_export]
macro_rules! delegate_store {
    ($store:ty, $field:ident, $rings:ident) => {
        impl $store {
            /// Installs the schema or brings it up to date. Idempotent, and safe when many processes do it at once.
            ///
            /// # Errors
            ///
            /// [`StoreError`](awa_core::StoreError) with the reason; nothing was changed.
            pub async fn prepare_schema(&self) -> Result<$crate::store::Prepared, awa_core::StoreError> {
                self.$field.prepare_schema(self.$rings).await
            }

            /// Checks that the schema is there and fits this program.
            ///
            /// # Errors
            ///
            /// [`NotReady`](awa_core::StoreErrorKind::NotReady) with the command that helps.
            pub async fn check_ready(&self) -> Result<(), awa_core::StoreError> {
                self.$field.check_ready().await
            }

            /// Makes a schema usable that was carried here from another cluster, or whose ring pointers or sequences do not fit
            /// its rows. Safe to repeat.
            ///
            /// # Errors
            ///
            /// As [`PgStore::repair`](awa_pg::store::PgStore::repair); nothing was changed.
            pub async fn repair(&self) -> Result<$crate::store::Repaired, awa_core::StoreError> {
                self.$field.repair().await
            }

            /// Refuses to turn the rings back into the receipt tables of before them, and says why. Changes nothing.
            ///
            /// # Errors
            ///
            /// Always, as [`PgStore::downgrade`](awa_pg::store::PgStore::downgrade).
            pub async fn downgrade(&self) -> Result<std::convert::Infallible, awa_core::StoreError> {
                self.$field.downgrade().await
            }

            /// Looks at everything that can go wrong and says what to do about it. Changes nothing.
            ///
            /// # Errors
            ///
            /// [`StoreError`](awa_core::StoreError) when the server cannot be reached. A schema that is missing or does not fit
            /// is a finding.
            pub async fn doctor(
                &self,
                options: &$crate::store::DoctorOptions,
            ) -> Result<awa_core::doctor::Report, awa_core::StoreError> {
                self.$field.doctor(options).await
            }

            /// What [`Self::doctor`] judges, for programs that judge by themselves.
            ///
            /// # Errors
            ///
            /// As [`Self::doctor`].
            pub async fn doctor_facts(
                &self,
                options: &$crate::store::DoctorOptions,
            ) -> Result<awa_core::doctor::Facts, awa_core::StoreError> {
                self.$field.doctor_facts(options).await
            }

            /// A look at what the server counts, for benchmarks.
            pub fn measure(&self) -> $crate::store::Measure<'_> {
                self.$field.measure()
            }
        }

        $crate::delegate_store!(@one $store, $field, awa_core::store::Producer {
            async fn enqueue(&self, jobs: &[awa_core::NewJob])
                -> Result<Vec<awa_core::Enqueued>, awa_core::StoreError>;
        });
        $crate::delegate_store!(@one $store, $field, awa_core::store::Consumer {
            async fn claim(&self, request: &awa_core::store::ClaimRequest)
                -> Result<awa_core::store::Claimed, awa_core::StoreError>;
            async fn close(&self, closures: &[awa_core::Closure])
                -> Result<Vec<awa_core::ClosureAnswer>, awa_core::StoreError>;
            async fn beat(&self, instance: awa_core::InstanceId, staleness: std::time::Duration)
                -> Result<(), awa_core::StoreError>;
            async fn retire(&self, instance: awa_core::InstanceId) -> Result<(), awa_core::StoreError>;
            async fn open_attempts(&self, instance: awa_core::InstanceId, limit: usize)
                -> Result<Vec<awa_core::attempt::Receipt>, awa_core::StoreError>;
            async fn are_open(&self, receipts: &[awa_core::attempt::Receipt])
                -> Result<Vec<bool>, awa_core::StoreError>;
            async fn peek(&self, queues: &[awa_core::QueueName])
                -> Result<awa_core::store::Peeked, awa_core::StoreError>;
        });
        $crate::delegate_store!(@one $store, $field, awa_core::store::Attempts {
            async fn note(&self, notes: &[awa_core::store::AttemptNote])
                -> Result<Vec<awa_core::store::NoteAnswer>, awa_core::StoreError>;
            async fn recall(&self, receipts: &[awa_core::attempt::Receipt])
                -> Result<Vec<Option<awa_core::store::Memory>>, awa_core::StoreError>;
            async fn resume(&self, callbacks: &[awa_core::store::Callback])
                -> Result<Vec<awa_core::CallbackAnswer>, awa_core::StoreError>;
        });
        $crate::delegate_store!(@one $store, $field, awa_core::store::Maintainer {
            async fn try_tick(&self, task: awa_core::store::Task, every: std::time::Duration)
                -> Result<bool, awa_core::StoreError>;
            async fn promote(&self, limit: usize)
                -> Result<awa_core::store::Promoted, awa_core::StoreError>;
            async fn rescue(&self, request: &awa_core::store::RescueRequest, retry: &awa_core::retry::RetryPolicy)
                -> Result<awa_core::store::Rescued, awa_core::StoreError>;
            async fn rotate(&self, ring: awa_core::ring::RingKind, policy: &awa_core::ring::RotationPolicy)
                -> Result<awa_core::store::Rotated, awa_core::StoreError>;
            async fn drain(&self) -> Result<awa_core::store::Drained, awa_core::StoreError>;
            async fn unpin(&self, policy: &awa_core::unpin::UnpinPolicy)
                -> Result<awa_core::store::Unpinned, awa_core::StoreError>;
            async fn prune(&self, ring: awa_core::ring::RingKind, retention: &awa_core::store::RetentionPolicy)
                -> Result<Vec<awa_core::store::PruneReport>, awa_core::StoreError>;
            async fn tidy(&self) -> Result<(), awa_core::StoreError>;
            async fn open_queue(&self, queue: &awa_core::QueueName) -> Result<(), awa_core::StoreError>;
            async fn forget_dead(&self, age: std::time::Duration, limit: usize)
                -> Result<usize, awa_core::StoreError>;
            async fn open_queues(&self, queues: &[awa_core::QueueName]) -> Result<(), awa_core::StoreError>;
        });
        $crate::delegate_store!(@one $store, $field, awa_core::store::Operator {
            async fn get(&self, job: awa_core::JobId)
                -> Result<Option<awa_core::store::JobView>, awa_core::StoreError>;
            async fn list(&self, filter: &awa_core::store::JobFilter)
                -> Result<Vec<awa_core::store::JobView>, awa_core::StoreError>;
            async fn queues(&self) -> Result<Vec<awa_core::store::QueueView>, awa_core::StoreError>;
            async fn census(&self) -> Result<Vec<awa_core::store::CensusCount>, awa_core::StoreError>;
            async fn cancel(&self, jobs: &[awa_core::JobId], reason: &awa_core::attempt::ErrorText)
                -> Result<Vec<awa_core::store::Acted>, awa_core::StoreError>;
            async fn retry(&self, jobs: &[awa_core::JobId])
                -> Result<Vec<awa_core::store::Acted>, awa_core::StoreError>;
            async fn set_paused(&self, queue: &awa_core::QueueName, paused: bool)
                -> Result<(), awa_core::StoreError>;
            async fn configure_queue(&self, queue: &awa_core::QueueName, settings: &awa_core::QueueSettings)
                -> Result<(), awa_core::StoreError>;
            async fn queue_settings(&self, queue: &awa_core::QueueName)
                -> Result<awa_core::QueueSettings, awa_core::StoreError>;
            async fn move_jobs(&self, jobs: &[awa_core::JobId], to: &awa_core::store::MoveTo)
                -> Result<Vec<awa_core::store::Acted>, awa_core::StoreError>;
            async fn purge_queue(&self, queue: &awa_core::QueueName, scope: awa_core::store::PurgeScope)
                -> Result<awa_core::store::Purged, awa_core::StoreError>;
            async fn delete(&self, jobs: &[awa_core::JobId])
                -> Result<Vec<awa_core::store::Acted>, awa_core::StoreError>;
            async fn grow_ring(&self, ring: awa_core::ring::RingKind, slots: u8)
                -> Result<awa_core::store::Grown, awa_core::StoreError>;
            async fn counts(&self, accuracy: awa_core::store::Accuracy)
                -> Result<awa_core::store::Counts, awa_core::StoreError>;
        });

        impl awa_core::Store for $store {
            fn describe(&self) -> String {
                self.$field.describe()
            }

            fn wakeups(&self) -> Option<&dyn awa_core::store::Wakeups> {
                self.$field.wakeups().map(|wakeups| wakeups as &dyn awa_core::store::Wakeups)
            }

            fn is_durable(&self) -> bool {
                true
            }
        }
    };
    (@one $store:ty, $field:ident, $trait:path {
        $(async fn $method:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*
    }) => {
        #[async_trait::async_trait]
        impl $trait for $store {
            $(
                async fn $method(&self $(, $argument: $type)*) -> $answer {
                    self.$field.$method($($argument),*).await
                }
            )*
        }
    };
}
