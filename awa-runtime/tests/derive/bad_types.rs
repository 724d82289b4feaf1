use awa_runtime::Job;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "a")]
struct Generic<T> {
    value: T,
}

#[derive(Job)]
#[job(kind = "b")]
union Union {
    a: u8,
    b: i8,
}

fn main() {}
