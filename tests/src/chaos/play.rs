//! The frame around a scene: a database, a crew and producers before the harm, and the counting after it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use awa_core::QueueName;
use awa_core::store::Maintainer as _;
use awa_pg::cluster::Cluster;
use awa_store_sqlx::{RingSizes, SqlxStore};
use tokio::task::spawn_blocking;

use super::actors::{Actors, Harm};
use super::arguments::Arguments;
use super::census::{self, Census};
use super::crew::{Crew, Ended, Workplace};
use super::producers::Producers;
use super::report::{Line, SKIPPED};
use super::servers::{self, Servers};
use super::{Failure, Scene, job, settled};
use crate::seed::Seed;

/// Small enough to go around many times in a scene.
const RINGS: RingSizes = RingSizes { queue: 6, claim: 5, lease: 4 };
/// What a scene takes besides its harm: set-up, healing and counting.
const AROUND: Duration = Duration::from_secs(8);
/// The shortest and the longest harm.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(25);

/// How often the ring that turned least has turned, the last turns of the count included.
const TURNS: &str = "
    SELECT least((SELECT max(generation) FROM awa.queue_ring_slots), (SELECT max(generation) FROM awa.claim_ring_slots))";

/// Plays scenes until the time is over, at least each of them once, and shows each line as soon as it is there. Gives the lines.
///
/// # Errors
///
/// When no server can be started. What goes wrong in a scene is in its line.
pub async fn run(arguments: &Arguments, show: impl Fn(&Line)) -> Result<Vec<Line>, Failure> {
    let started = Instant::now();
    let cluster = servers::start_cluster().await?;
    let mut seed = arguments.seed.unwrap_or(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64);
    let share = arguments.length / u32::try_from(arguments.scenes.len())?;
    let fire = share.saturating_sub(AROUND).clamp(SHORTEST, LONGEST);
    let mut lines = Vec::new();
    for round in 0.. {
        for scene in &arguments.scenes {
            // A first round is always played to its end.
            if round > 0 && started.elapsed() + fire + AROUND > arguments.length {
                return Ok(lines);
            }
            let line = play(*scene, &cluster, fire, seed).await;
            show(&line);
            lines.push(line);
        }
        seed += 1;
    }
    Ok(lines)
}

async fn play(scene: Scene, cluster: &Arc<Cluster>, fire: Duration, seed: u64) -> Line {
    let started = Instant::now();
    if let Some(lack) = scene.lacks(cluster) {
        return Line::without_census(scene.name(), seed, started.elapsed(), format!("{SKIPPED}{lack}"));
    }
    match attempt(scene, cluster, fire, seed).await {
        Ok((harm, census)) => Line::of(scene.name(), seed, started.elapsed(), harm.kills, &census),
        Err(failure) => Line::without_census(scene.name(), seed, started.elapsed(), format!("broke off: {failure}")),
    }
}

async fn attempt(scene: Scene, cluster: &Arc<Cluster>, fire: Duration, seed: u64) -> Result<(Harm, Census), Failure> {
    let database = format!("chaos_{}_{seed}", scene.name().replace('-', "_"));
    let folder = std::env::temp_dir().join(format!("awa-chaos-{}-{database}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let servers = Servers::of(scene, cluster, &folder).await?;
    prepare(scene, &servers, &database).await?;
    let workplace = Workplace::of(scene, &servers, &database, &folder);
    let seed = Seed::of(seed);
    let producers = Producers::start(workplace.open_store().await?, &folder, &seed)?;
    let mut crew = Crew::new(workplace);
    scene.start_crew(&mut crew).await?;
    let until = Instant::now() + fire;
    let mut actors = Actors { servers, database, crew, producers, seed: seed.split(7), until };
    let harm = scene.play(&mut actors).await?;
    let census = count(actors, &folder, &harm).await?;
    if census.is_clean() {
        std::fs::remove_dir_all(&folder)?;
    } else {
        eprintln!("chaos: the books of {} are in {}", scene.name(), folder.display());
    }
    Ok((harm, census))
}

/// Makes the database.
async fn prepare(scene: Scene, servers: &Servers, database: &str) -> Result<(), Failure> {
    let (server, name) = (Arc::clone(servers.cluster()), database.to_owned());
    spawn_blocking(move || server.create_database(&name, None)).await??;
    let options = SqlxStore::options().rings(RINGS).max_connections(1).wakeups(false);
    let store = options.connect(&servers.direct(database)).await?;
    store.prepare_schema().await?;
    for queue in job::QUEUES {
        store.open_queue(&QueueName::new(queue)?).await?;
    }
    sqlx::raw_sql(include_str!("audit.sql")).execute(store.pool()).await?;
    if let Some(preparation) = scene.preparation() {
        sqlx::raw_sql(preparation).execute(store.pool()).await?;
    }
    store.pool().close().await;
    Ok(())
}

/// Waits until all is quiet, lets everybody go, and compares the books.
async fn count(mut actors: Actors, folder: &Path, harm: &Harm) -> Result<Census, Failure> {
    let known = actors.producers.end().await?;
    let direct = actors.servers.direct(&actors.database);
    let store = SqlxStore::options().max_connections(1).wakeups(false).connect(&direct).await?;
    let left = settled::wait_until_drained(store.pool()).await?;
    let Ended { problems, .. } = actors.crew.end().await;
    actors.servers.dismiss_pooler();
    let mut census = census::take(store.pool(), &known, folder).await?;
    let is_unproven = harm.expects_refusal && census.refused == 0;
    census.problem_if(is_unproven, "the scene proves nothing: no end of a rescued attempt was refused");
    census.problem_if(left > 0, &format!("{left} jobs did not end"));
    census.problems.extend(problems);
    census.problems.extend(harm.unmet.iter().cloned());
    census.problems.extend(settled::left_behind(store.pool()).await?);
    census.problems.extend(settled::empty_the_rings(&store).await?);
    let turns = census::number(store.pool(), TURNS).await?;
    census.problem_if(turns < 4, &format!("the scene proves nothing: the rings have turned only {turns} times"));
    census.problem_if(known.acknowledged.len() < 20, "hardly anything was enqueued");
    store.pool().close().await;
    Ok(census)
}
