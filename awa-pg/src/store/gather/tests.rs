use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use awa_core::{JobId, JsonText};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const BAD: &str = "\"bad\"";
const AWAY: &str = "\"away\"";
const BUSY: &str = "\"busy\"";
const PANIC: &str = "\"panic\"";

/// Carries when it is let, and keeps what it carried.
#[derive(Debug, Clone)]
struct Gate(Arc<Carried>);

#[derive(Debug)]
struct Carried {
    open: Semaphore,
    calls: Mutex<Vec<Vec<String>>>,
    ids: AtomicI64,
}

#[async_trait]
impl Carrier for Gate {
    async fn carry(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let texts: Vec<_> = jobs.iter().map(|job| job.args().as_str().to_owned()).collect();
        self.0.calls.lock().unwrap().push(texts.clone());
        self.0.open.acquire().await.unwrap().forget();
        let has = |what: &str| texts.iter().any(|text| text == what);
        assert!(!has(PANIC), "as the test wants");
        let errors =
            [(BAD, StoreErrorKind::Refused), (AWAY, StoreErrorKind::Unavailable), (BUSY, StoreErrorKind::Contended)];
        if let Some((args, kind)) = errors.into_iter().find(|(args, _)| has(args)) {
            return Err(StoreError::new(kind, OPERATION, format!("as {args} wants")));
        }
        Ok(texts.iter().map(|_| Enqueued::Inserted(JobId(self.0.ids.fetch_add(1, Ordering::SeqCst)))).collect())
    }
}

/// A gate and what waits at it.
struct Scene {
    gathering: Gathering,
    gate: Gate,
}

type Call = JoinHandle<Result<Enqueued, StoreError>>;

impl Scene {
    fn new() -> Self {
        let carried = Carried { open: Semaphore::new(0), calls: Mutex::default(), ids: AtomicI64::new(1) };
        Self { gathering: Gathering::default(), gate: Gate(Arc::new(carried)) }
    }

    /// Starts a call, which has set out or waits when this returns.
    async fn start(&self, job: NewJob) -> Call {
        let (gathering, gate) = (self.gathering.clone(), self.gate.clone());
        let call = tokio::spawn(async move { gathering.enqueue(&gate, &job).await });
        settle().await;
        call
    }

    /// So many calls on their way, each alone, that whoever comes must wait.
    async fn crowd(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        for number in 0..MAX_ON_THE_WAY {
            calls.push(self.start(job("q", &format!("{number}"))).await);
        }
        calls
    }

    /// Lets one of those on their way arrive, so that all who wait go together, and then everybody.
    async fn open_one_and_all(&self) {
        self.open(1).await;
        self.open(1_000).await;
    }

    async fn open(&self, permits: usize) {
        self.gate.0.open.add_permits(permits);
        settle().await;
    }

    fn calls(&self) -> Vec<Vec<String>> {
        self.gate.0.calls.lock().unwrap().clone()
    }

    /// All of these are answered well, and nothing is left of anybody.
    async fn is_over(&self, calls: impl IntoIterator<Item = Call>) {
        for call in calls {
            answer(call).await.unwrap();
        }
        assert!(self.gathering.lock().is_empty());
    }
}

/// Lets every task go on until it waits: the runtime of a test has one thread.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn job(queue: &str, args: &str) -> NewJob {
    let (queue, kind) = (QueueName::new(queue).unwrap(), JobKind::new("k").unwrap());
    NewJob::new(queue, kind, JsonText::new("args", args.to_owned()).unwrap())
}

async fn answer(call: Call) -> Result<Enqueued, StoreErrorKind> {
    let answer = timeout(Duration::from_mins(1), call).await.expect("nobody waits for ever").unwrap();
    answer.map_err(|error| error.kind())
}

#[tokio::test]
async fn who_comes_alone_goes_at_once_and_alone() {
    let scene = Scene::new();
    for number in ["1", "2", "3"] {
        let call = scene.start(job("q", number)).await;
        scene.open(1).await;
        answer(call).await.unwrap();
    }
    assert_eq!(scene.calls(), [["1"], ["2"], ["3"]]);
    scene.is_over([]).await;
}

#[tokio::test]
async fn who_comes_while_others_are_on_their_way_goes_with_the_next() {
    let scene = Scene::new();
    let crowd = scene.crowd().await;
    let mut calls = Vec::new();
    for number in 10..20 {
        calls.push(scene.start(job("q", &number.to_string())).await);
    }
    assert_eq!(scene.calls().len(), MAX_ON_THE_WAY);
    scene.open(1).await;
    assert_eq!(scene.calls().pop().unwrap(), (10..20).map(|number| number.to_string()).collect::<Vec<_>>());
    scene.open(MAX_ON_THE_WAY).await;
    let mut ids = Vec::new();
    for call in crowd.into_iter().chain(calls) {
        ids.push(answer(call).await.unwrap().id());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), MAX_ON_THE_WAY + 10, "each has an id of its own");
    assert_eq!(scene.calls().len(), MAX_ON_THE_WAY + 1);
    scene.is_over([]).await;
}

#[tokio::test]
async fn a_statement_takes_a_bounded_number_of_them() {
    let scene = Scene::new();
    let crowd = scene.crowd().await;
    let mut calls = Vec::new();
    for number in 0..MAX_JOBS + 5 {
        calls.push(scene.start(job("q", &number.to_string())).await);
    }
    scene.open_one_and_all().await;
    scene.is_over(crowd.into_iter().chain(calls)).await;
    let lengths: Vec<_> = scene.calls().iter().map(Vec::len).collect();
    assert_eq!(lengths[MAX_ON_THE_WAY], MAX_JOBS);
    assert_eq!(lengths.iter().sum::<usize>(), MAX_ON_THE_WAY + MAX_JOBS + 5);
}

#[tokio::test]
async fn jobs_that_are_not_alike_do_not_wait_for_each_other() {
    let scene = Scene::new();
    let mut calls = scene.crowd().await;
    calls.push(scene.start(job("another", "1")).await);
    calls.push(scene.start(job("q", "2").with_priority(Priority::new(1).unwrap())).await);
    calls.push(scene.start(job("q", "3").with_max_attempts(MaxAttempts::new(1).unwrap())).await);
    assert_eq!(scene.calls().len(), calls.len());
    scene.open(calls.len()).await;
    scene.is_over(calls).await;
}

#[tokio::test]
async fn a_job_that_is_refused_refuses_no_other() {
    let scene = Scene::new();
    let crowd = scene.crowd().await;
    let (good, bad, other) =
        (scene.start(job("q", "1")).await, scene.start(job("q", BAD)).await, scene.start(job("q", "2")).await);
    scene.open_one_and_all().await;
    assert!(answer(good).await.is_ok());
    assert_eq!(answer(bad).await, Err(StoreErrorKind::Refused));
    assert!(answer(other).await.is_ok());
    scene.is_over(crowd).await;
}

/// The outcome is unknown, or it is no single job's fault: to send each alone would store some twice, or make the last of many
/// wait for as many time-outs.
#[tokio::test]
async fn what_is_no_single_jobs_fault_is_told_to_all_and_nothing_is_sent_again() {
    for (args, kind) in [(AWAY, StoreErrorKind::Unavailable), (BUSY, StoreErrorKind::Contended)] {
        let scene = Scene::new();
        let crowd = scene.crowd().await;
        let calls = [scene.start(job("q", args)).await, scene.start(job("q", "1")).await];
        scene.open_one_and_all().await;
        for call in calls {
            let error = call.await.unwrap().unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (kind, format!("enqueue failed: as {args} wants")));
        }
        scene.is_over(crowd).await;
        assert_eq!(scene.calls().len(), MAX_ON_THE_WAY + 1);
    }
}

#[tokio::test]
async fn who_gives_up_while_waiting_is_not_sent_and_holds_nobody_up() {
    let scene = Scene::new();
    let crowd = scene.crowd().await;
    // The first who waits would lead the others.
    let (first, second, third) =
        (scene.start(job("q", "1")).await, scene.start(job("q", "2")).await, scene.start(job("q", "3")).await);
    first.abort();
    third.abort();
    scene.open_one_and_all().await;
    answer(second).await.unwrap();
    scene.is_over(crowd).await;
    assert_eq!(scene.calls()[MAX_ON_THE_WAY..], [["2"]]);
}

#[tokio::test]
async fn who_gives_up_on_the_way_takes_nobody_along() {
    let scene = Scene::new();
    let crowd = scene.crowd().await;
    let (leader, other) = (scene.start(job("q", "1")).await, scene.start(job("q", "2")).await);
    scene.open(1).await;
    leader.abort();
    scene.open(1_000).await;
    answer(other).await.unwrap();
    scene.is_over(crowd).await;
    // Alone as well: another goes on behind one who has left.
    let scene = Scene::new();
    let mut crowd = scene.crowd().await;
    let other = scene.start(job("q", "3")).await;
    crowd.remove(0).abort();
    settle().await;
    assert_eq!(scene.calls().pop().unwrap(), ["3"]);
    scene.open_one_and_all().await;
    answer(other).await.unwrap();
    scene.is_over(crowd).await;
}

#[tokio::test]
async fn a_panic_on_the_way_is_an_unknown_outcome_for_those_on_board_and_ends_there() {
    let scene = Scene::new();
    let crowd = scene.crowd().await;
    let (one, other) = (scene.start(job("q", PANIC)).await, scene.start(job("q", "1")).await);
    scene.open_one_and_all().await;
    assert_eq!(answer(one).await, Err(StoreErrorKind::Unavailable));
    assert_eq!(answer(other).await, Err(StoreErrorKind::Unavailable));
    scene.is_over(crowd).await;
    answer(scene.start(job("q", "2")).await).await.unwrap();
}

#[test]
fn what_is_to_go_alone_is_not_taken() {
    let plain = job("q", "1");
    assert!(Gathering::takes(&plain));
    let later = RunAt::after(Duration::from_secs(1)).unwrap();
    assert!(!Gathering::takes(&plain.clone().with_run_at(later)));
    assert!(!Gathering::takes(&job("q", &format!("\"{}\"", "x".repeat(MAX_BYTES)))));
    let metadata = JsonText::new("metadata", format!("\"{}\"", "x".repeat(MAX_BYTES))).unwrap();
    assert!(!Gathering::takes(&plain.with_metadata(metadata)));
}
