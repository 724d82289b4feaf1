use std::fs;

use awa_core::attempt::ErrorText;
use awa_core::id::Slot;
use awa_core::job::MaxAttempts;
use awa_core::{BatchId, JobKind, JsonText, Nonce, Priority, ReceiptId, RunLease, Timestamp};
use tempfile::TempDir;

use super::super::files;
use super::*;

/// A folder of three files, with their jobs committed under the ids 1 to 3 and completed.
struct Scene {
    _dir: TempDir,
    files: Vec<FoundFile>,
    produced: Produced,
    jobs: Vec<JobView>,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let files = files::find(dir.path(), 10).unwrap().files;
        let committed = (0..3).map(|file| CommittedJob { id: id(file), file, is_late: file == 2 }).collect();
        let produced = Produced { committed, rolled_back: 0, transactions: 1 };
        let jobs = files.iter().enumerate().map(|(at, file)| completed(id(at), file)).collect();
        Self { _dir: dir, files, produced, jobs }
    }

    fn findings(&self, held: &[Receipt]) -> Findings {
        compare(&self.files, &self.produced, &self.jobs, held)
    }
}

fn id(file: usize) -> JobId {
    JobId(file as i64 + 1)
}

fn completed(id: JobId, file: &FoundFile) -> JobView {
    JobView {
        id,
        state: JobState::Completed,
        queue: QueueName::new("q").unwrap(),
        kind: JobKind::new("k").unwrap(),
        priority: Priority::default(),
        attempt: 1,
        max_attempts: MaxAttempts::default(),
        run_lease: RunLease(1),
        args: JsonText::of("args", &HashFile { path: file.path.clone() }).unwrap(),
        metadata: None,
        created_at: Timestamp::from_micros(1_000_000),
        run_at: None,
        deferred: None,
        claimed_at: None,
        finalized_at: Some(Timestamp::from_micros(1_000_000 * (id.get() + 1))),
        result: Some(JsonText::of("result", &FileHash::of(Path::new(&file.path)).unwrap()).unwrap()),
        error: None,
    }
}

fn receipt(job: JobId, run_lease: i64) -> Receipt {
    Receipt {
        id: ReceiptId::new(BatchId(1), 1),
        claim_slot: Slot(0),
        nonce: Nonce(1),
        job,
        run_lease: RunLease(run_lease),
    }
}

#[test]
fn a_run_without_fault_is_clean_and_measured() {
    let findings = Scene::new().findings(&[]);
    assert_eq!(
        findings,
        Findings {
            completed: 3,
            latencies: vec![Duration::from_secs(1), Duration::from_secs(2)],
            span: Duration::from_secs(3),
            ..Findings::default()
        }
    );
}

#[test]
fn a_job_that_is_gone_or_did_not_complete_is_lost() {
    let mut scene = Scene::new();
    scene.jobs.remove(0);
    scene.jobs[0].state = JobState::Dead;
    scene.jobs[0].error = Some(ErrorText::new("boom"));
    let findings = scene.findings(&[]);
    assert_eq!((findings.completed, findings.lost), (1, 2));
    assert!(findings.problems[0].contains("is gone") && findings.problems[1].contains("dead (boom)"), "{findings:?}");
}

#[test]
fn a_wrong_result_is_a_mismatch() {
    let mut scene = Scene::new();
    scene.jobs[0].result = scene.jobs[1].result.clone();
    scene.jobs[1].result = None;
    scene.jobs[2].args = scene.jobs[1].args.clone();
    let findings = scene.findings(&[]);
    assert_eq!((findings.completed, findings.mismatched), (3, 3));
}

#[test]
fn a_result_that_says_gone_of_a_file_that_is_there_is_a_mismatch() {
    let mut scene = Scene::new();
    let gone = FileHash { sha256: None, bytes: 0 };
    scene.jobs[0].result = Some(JsonText::of("result", &gone).unwrap());
    assert_eq!(scene.findings(&[]).mismatched, 1);
}

#[test]
fn a_file_that_changed_or_vanished_proves_nothing() {
    let scene = Scene::new();
    fs::write(&scene.files[0].path, "changed").unwrap();
    fs::remove_file(&scene.files[1].path).unwrap();
    let findings = scene.findings(&[]);
    assert_eq!((findings.completed, findings.changed, findings.mismatched), (3, 2, 0));
}

#[test]
fn a_job_of_a_transaction_that_rolled_back_is_unexpected_and_so_is_a_second_row_of_a_job() {
    let mut scene = Scene::new();
    let again = scene.jobs[0].clone();
    scene.produced.committed.remove(2);
    scene.jobs.push(again);
    assert_eq!(scene.findings(&[]).unexpected, 2);
}

#[test]
fn attempts_of_the_killed_worker_are_rescued_and_all_others_retried() {
    let mut scene = Scene::new();
    (scene.jobs[0].attempt, scene.jobs[0].run_lease) = (2, RunLease(2));
    (scene.jobs[1].attempt, scene.jobs[1].run_lease) = (3, RunLease(3));
    // The first was held and run again; of the second one of two; the third was closed before the worker died.
    let held = [receipt(id(0), 1), receipt(id(1), 2), receipt(id(2), 1)];
    let findings = scene.findings(&held);
    assert_eq!((findings.rescued, findings.retried), (2, 1));
}
