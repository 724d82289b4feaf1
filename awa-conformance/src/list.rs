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
                an_empty_batch_is_answered_with_nothing [];
                one_batch_may_mix_queues_priorities_and_times [];
                a_job_comes_out_as_it_went_in [];
                a_scheduled_job_waits_for_its_time [Clock];
                a_moment_that_is_past_means_now [];
                extreme_times_are_kept [];
            }
            order {
                jobs_of_one_transaction_come_in_enqueue_order [Transactions];
                transactions_come_in_the_order_in_which_they_began_to_write [Transactions];
                a_late_commit_is_taken_by_the_very_next_claim [Transactions];
                late_commits_are_taken_in_order_one_by_one [Transactions];
                overlapping_transactions_lose_nothing_and_repeat_nothing [Transactions];
                claims_of_any_size_take_an_exact_prefix [];
                the_more_urgent_lane_goes_first [];
                queues_do_not_mix [];
                a_retried_job_joins_the_tail [Clock];
                promoted_and_resurrected_jobs_join_the_tail [Clock];
                a_claim_stops_at_its_limit_of_bytes [];
                a_job_that_waits_ages_into_a_more_urgent_lane [Clock];
                a_turn_of_the_ring_does_not_change_the_order [Rings];
                concurrent_claims_never_share_a_job [];
            }
            close {
                an_attempt_closes_once [];
                the_first_of_two_closures_in_one_call_wins [];
                of_racing_closers_one_wins [];
                a_receipt_that_is_wrong_anywhere_closes_nothing [];
                a_bad_closure_touches_no_other [];
                one_call_may_end_attempts_of_many_batches_in_many_ways [];
                an_empty_call_is_answered_with_nothing [];
                members_of_a_batch_end_independently [];
            }
            fencing {
                a_rescued_worker_is_refused [Clock];
                the_worker_of_a_cancelled_job_is_refused [];
                an_old_attempt_is_refused_while_a_new_one_runs [Clock];
                the_worker_of_a_dead_job_is_refused [];
            }
            ends {
                complete_leads_to_completed [];
                a_result_is_kept_to_the_byte [];
                a_retry_waits_for_its_delay_and_counts [Clock];
                snoozes_and_releases_are_not_charged [Clock];
                a_fatal_error_leads_to_dead [];
                cancel_leads_to_cancelled [];
                a_job_has_exactly_its_budget_of_attempts [Clock];
                hostile_texts_do_not_stop_a_closure [];
                extreme_delays_defer_for_good [];
            }
            rescue {
                the_attempt_of_a_silent_worker_is_rescued [Clock];
                a_living_worker_is_never_rescued [Clock];
                a_rescuer_must_have_been_healthy_itself [Clock];
                a_deadline_ends_an_attempt_whose_worker_lives [Clock];
                a_job_that_kills_its_worker_ends_dead [Clock];
                a_process_that_never_beat_is_rescued [Clock];
                a_retired_process_is_rescued_at_once [Clock];
                claims_that_are_exempt_hide_no_other [Clock];
                only_open_members_of_a_batch_are_rescued [Clock];
                two_rescuers_at_once_charge_an_attempt_once [Clock];
                a_process_may_ask_for_more_patience [Clock];
            }
            transactions {
                a_job_exists_from_its_commit_on [Transactions];
                a_rollback_leaves_nothing [Transactions];
                a_dropped_transaction_is_rolled_back [Transactions];
                an_open_transaction_delays_nobody [Clock, Rings, Transactions];
                an_enqueue_of_its_own_is_there_when_it_returns [];
            }
            reclaim {
                an_open_attempt_outlives_the_rings [Rings];
                a_waiting_job_outlives_the_ring [Rings];
                an_open_transaction_outlives_the_ring [Rings, Transactions];
                a_rolled_back_transaction_keeps_no_slot [Rings, Transactions];
                every_end_of_an_attempt_leaves_its_slots_reclaimable [Rings];
                rescued_attempts_leave_their_slots_reclaimable [Clock, Rings];
                every_wish_of_an_operator_leaves_the_slots_reclaimable [Rings];
                history_is_kept_for_its_time [Clock, Rings];
                every_kind_of_history_keeps_its_slot [Clock, Rings];
                history_beyond_its_room_goes_early [Rings];
                dead_and_deferred_jobs_outlive_the_rings [Rings];
                a_full_ring_absorbs_what_comes [Rings];
                a_slot_is_drained_when_its_jobs_are_taken [Rings];
                a_ring_turns_only_when_it_is_due [Clock, Rings];
                a_receipt_from_a_reclaimed_slot_is_stale [Rings];
                a_paused_queue_does_not_stop_the_others [Rings];
            }
            retention {
                a_failed_job_is_carried_forward_for_its_time [Clock, Queues, Rings];
                a_failed_job_that_was_carried_forward_is_as_before [Queues, Rings];
                failed_jobs_beyond_their_room_go_oldest_first [Clock, Queues, Rings];
                each_way_to_end_has_its_own_time [Clock, Rings];
            }
            operate {
                all_views_agree_at_every_step [];
                an_older_attempt_never_shadows_a_newer_state [];
                cancel_in_every_state [];
                retry_in_every_state [];
                delete_in_every_state [Rings];
                a_deleted_job_hides_no_other [Rings];
                a_retry_of_a_dead_job_counts_from_zero [];
                wishes_are_answered_one_by_one [Transactions];
                a_cancelled_ready_job_is_never_handed_out [];
                a_cancelled_deferred_job_does_not_come_back [Clock];
                a_cancel_and_a_completion_agree_who_won [];
                lists_filter_by_all_conditions_at_once [];
                pages_do_not_shift_while_jobs_come_in [];
                a_page_has_a_longest_length [];
                queues_are_listed_from_their_first_use [];
                what_has_ended_is_counted_for_good [Rings];
            }
            moves {
                a_ready_job_joins_the_tail_of_its_new_lane [Queues];
                a_job_may_be_moved_back [Queues];
                move_in_every_state [Queues];
                a_job_that_is_there_already_keeps_its_place [Queues];
                a_deferred_job_goes_where_it_was_moved [Clock, Queues];
                a_job_that_was_handed_back_can_be_moved [Queues];
                a_moved_job_keeps_its_key [Queues];
                moved_jobs_of_one_ordering_key_stay_in_order [Queues];
                a_moved_job_can_be_cancelled [Queues];
            }
            peek {
                a_look_names_every_queue_with_work [];
                a_look_takes_nothing_and_repeats_itself [];
                a_paused_queue_need_not_be_named [];
                a_late_commit_is_seen_by_the_very_next_look [Transactions];
                a_look_sees_behind_a_claim_that_stopped_at_its_limit [];
                a_look_sees_what_is_handed_back [Clock];
                a_look_sees_what_waits_in_older_slots [Rings];
                many_queues_are_opened_at_once [];
            }
            pause {
                a_paused_queue_hands_out_nothing [];
                an_unknown_queue_can_be_paused [];
                maintenance_goes_on_in_a_paused_queue [Clock];
            }
            purge {
                a_purge_removes_what_waits [Queues];
                a_purge_finds_jobs_outside_the_ring [Clock, Queues];
                a_purge_gives_keys_back [Queues];
                a_purge_leaves_what_is_not_committed [Transactions, Queues];
                a_purge_leaves_what_is_being_replaced [Transactions, Queues];
                what_was_purged_is_reclaimed [Queues];
            }
            queues {
                settings_are_kept_and_have_defaults [Queues];
                jobs_of_one_ordering_key_keep_their_order [Queues];
                an_ordered_job_stays_in_its_lane [Clock, Queues];
                a_change_of_the_shards_strands_nothing [Queues];
                priorities_go_before_shards [Queues];
                a_queue_without_a_dead_letter_queue_files_what_failed [Queues];
                rescued_jobs_are_filed_where_their_queue_says [Clock, Queues];
                a_failed_job_can_be_tried_again [Queues];
                a_failed_job_is_retried_once [Queues];
                a_failed_job_takes_its_key_again [Queues];
            }
            ticks {
                one_caller_per_interval_gets_the_turn [Clock];
                promotion_is_bounded_and_says_when_there_is_more [Clock];
                promotions_at_once_move_each_job_once [Clock];
                dead_jobs_go_when_their_time_is_over [Clock];
            }
            wakeups {
                a_commit_wakes_a_sleeper [Transactions, Wakeups];
                a_wake_up_before_the_wait_is_kept [Wakeups];
                a_rollback_wakes_nobody [Transactions, Wakeups];
                sleep_is_not_sound_while_an_older_writer_is_open [Transactions, Wakeups];
                a_dispatcher_falls_asleep_again_and_again [Wakeups];
                a_withdrawn_dispatcher_finds_its_jobs_by_asking [Wakeups];
                a_process_sleeps_over_many_queues_at_once [Wakeups];
                processes_sleep_each_for_itself [Wakeups];
            }
            unique {
                a_second_job_is_answered_with_the_first [];
                duplicates_touch_no_other_job_of_their_batch [];
                a_conflict_can_be_a_refusal [];
                every_end_of_an_attempt_settles_the_key [];
                members_of_a_batch_settle_their_own_keys [];
                a_cancelled_job_gives_its_key_back [];
                a_job_never_conflicts_with_itself [Clock];
                a_rescued_job_keeps_its_key_until_it_is_dead [Clock];
                a_dead_job_takes_its_key_again [];
                one_job_may_wait_beside_the_one_that_runs [];
                a_job_goes_on_without_the_key_that_it_gave_back [Clock];
                a_dead_job_may_hold_its_key [];
                a_deleted_job_gives_its_key_back [];
                a_waiting_job_is_replaced_by_a_newer_one [];
                a_running_job_is_not_replaced [];
                a_call_replaces_others_but_not_its_own [];
                a_replacement_counts_from_its_commit_on [Transactions];
                an_open_replacement_delays_no_claim [Transactions];
                the_next_period_has_another_key [Clock];
                a_winner_that_rolls_back_leaves_the_key_to_the_next [Transactions];
                a_winner_that_commits_is_the_answer_to_the_next [Transactions];
                a_transaction_is_held_to_its_own_keys [Transactions];
                an_open_asker_delays_neither_the_holder_nor_the_next [Transactions];
                of_many_at_once_one_gets_the_key [];
            }
            cancel_in {
                a_cancel_counts_from_its_commit_on [Transactions];
                cancel_in_every_state_in_a_transaction [Transactions];
                an_open_cancel_delays_nobody [Transactions];
                an_open_cancel_holds_only_what_it_found [Clock, Transactions];
                a_job_whose_cancel_was_asked_for_does_not_come_back [Clock, Transactions];
                a_cancel_in_a_transaction_frees_the_key [Transactions];
                a_transaction_puts_another_job_in_the_place_of_a_deferred_one [Transactions];
                a_transaction_takes_the_key_of_its_own_deferred_job_again [Transactions];
                a_transaction_cancels_its_own_jobs [Transactions];
            }
            carry {
                jobs_that_are_handed_back_run_next_in_their_order [Rings];
                what_is_handed_back_keeps_its_lane_and_the_limit_of_bytes [];
                waiting_jobs_keep_no_slot_and_their_order [Rings];
                a_backlog_stays_in_the_ring [Rings];
                a_late_commit_is_not_overtaken_by_what_is_carried_over [Rings, Transactions];
                a_job_that_was_carried_over_can_be_cancelled [Rings];
                claims_and_moves_at_once_share_no_job [Rings];
            }
            leases {
                an_attempt_without_a_slot_ends_in_every_way [Rings];
                an_attempt_that_is_moved_keeps_its_receipt [Rings];
                a_receipt_of_a_lease_that_is_wrong_anywhere_closes_nothing [Rings];
                one_call_ends_attempts_with_and_without_a_slot [Rings];
                attempts_without_a_slot_are_rescued [Clock, Rings];
                leases_of_a_dead_worker_are_rescued_page_by_page [Clock, Rings];
                a_job_that_runs_without_a_slot_can_be_cancelled [Rings];
                nothing_pins_the_rings [Rings];
                leases_outlive_their_ring [Rings];
                leases_that_are_moved_are_not_taken_for_stale [Rings];
            }
            grow {
                a_grown_ring_absorbs_what_pinned_it [Rings, Transactions];
                attempts_in_an_added_slot_are_like_any_other [Rings];
                attempts_in_an_added_slot_are_rescued [Clock, Rings];
                leases_go_on_in_a_grown_ring [Rings];
                a_ring_never_shrinks [Rings];
            }
            progress {
                a_checkpoint_is_kept_to_the_byte_and_replaced [Notes];
                progress_outlives_the_attempt [Clock, Notes];
                progress_is_gone_when_the_job_has_ended [Notes];
                a_stale_attempt_notes_nothing [Clock, Notes];
                notes_are_answered_one_by_one [Notes];
                an_attempt_that_has_noted_something_ends_in_every_way [Notes];
                an_attempt_may_show_life_itself [Clock, Notes];
                a_heartbeat_and_an_end_at_once_leave_nothing_behind [Notes];
                a_note_of_a_wrong_receipt_changes_nothing [Notes];
            }
            park {
                a_callback_resumes_a_parked_attempt [Notes];
                a_resumed_job_goes_before_all_others [Notes];
                a_callback_before_the_park_is_kept [Notes];
                a_payload_is_read_until_the_next_token [Clock, Notes];
                an_attempt_has_one_token [Notes];
                a_token_is_good_for_one_callback [Notes];
                an_unknown_token_resumes_nothing [Notes];
                a_token_ends_with_its_attempt [Clock, Notes];
                a_parked_attempt_is_not_held_by_its_worker [Clock, Notes];
                a_parked_attempt_whose_time_runs_out_has_failed [Clock, Notes];
                a_job_whose_callback_never_comes_ends_dead [Clock, Notes];
                a_late_callback_is_refused [Clock, Notes];
                a_waiting_job_can_be_cancelled [Notes];
                a_parked_attempt_keeps_no_slot [Clock, Notes];
                a_key_is_held_while_its_job_waits [Notes];
                of_callbacks_at_once_one_is_taken [Notes];
                a_callback_and_a_park_at_once_agree [Notes];
                callbacks_are_answered_one_by_one [Notes];
            }
            shapes {
                an_attempt_of_either_shape_ends_in_every_way [Rings];
                a_wrong_receipt_of_a_row_local_claim_closes_nothing [Rings];
                one_call_ends_attempts_of_both_shapes [Rings];
                one_pass_rescues_claims_of_both_shapes [Clock, Rings];
                row_local_claims_that_are_exempt_hide_no_other [Clock, Rings];
                an_open_claim_of_either_shape_keeps_its_slots [Rings];
                an_attempt_of_either_shape_is_moved_out_of_its_slots [Rings];
            }
            audit {
                the_attempts_of_a_lost_claim_are_found [Clock];
                a_worker_learns_which_attempts_were_ended [];
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
