//! The cases of the conformance suite that need transactions of an application, in transactions of blocking diesel
//! connections.

use awa_tests::diesel_store::FreshDieselStore;

macro_rules! cases {
    ($($topic:ident: $($case:ident)*;)*) => {
        $(mod $topic {
            use super::FreshDieselStore;
            $(
                #[tokio::test]
                async fn $case() {
                    let subject = FreshDieselStore::with_blocking_transactions().await;
                    awa_conformance::cases::$topic::$case(&subject).await;
                }
            )*
        })*
    };
}

cases! {
    transactions:
        a_job_exists_from_its_commit_on
        a_rollback_leaves_nothing
        a_dropped_transaction_is_rolled_back
        an_open_transaction_delays_nobody;
    order:
        jobs_of_one_transaction_come_in_enqueue_order
        transactions_come_in_the_order_in_which_they_began_to_write
        a_late_commit_is_taken_by_the_very_next_claim
        late_commits_are_taken_in_order_one_by_one
        overlapping_transactions_lose_nothing_and_repeat_nothing;
    wakeups:
        a_commit_wakes_a_sleeper
        a_rollback_wakes_nobody
        sleep_is_not_sound_while_an_older_writer_is_open;
    reclaim:
        an_open_transaction_outlives_the_ring
        a_rolled_back_transaction_keeps_no_slot;
    unique:
        a_replacement_counts_from_its_commit_on
        an_open_replacement_delays_no_claim
        a_winner_that_rolls_back_leaves_the_key_to_the_next
        a_winner_that_commits_is_the_answer_to_the_next
        a_transaction_is_held_to_its_own_keys
        an_open_asker_delays_neither_the_holder_nor_the_next;
}
