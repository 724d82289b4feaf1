# Waits until nobody uses the server in a folder, then stops it and removes the folder.
#
#   watchdog private <folder>             until the end of the standard input
#   watchdog shared <folder> <runner> <entry>   until no process named in <folder>/users has lived for a while; at
#                                         once when the process <runner> is gone too; <entry> is removed as well
#
# Runs in any POSIX shell. Started by the module `folder`.

mode=$1 folder=$2 runner=$3 entry=$4
data=$folder/data
trap '' HUP INT TERM QUIT

# How often a shared folder is looked at, in seconds, and how many idle looks in a row end it: between two tests of a
# run there is a moment without a user.
pause=0.2
patience=50

used() {
    for file in "$folder"/users/*; do
        kill -0 "${file##*/}" 2>/dev/null && return 0
        rm -f "$file"
    done
    return 1
}

wait_until_unused() {
    idle=0
    while [ "$idle" -lt "$patience" ]; do
        [ -d "$folder" ] || exit 0
        if used; then
            idle=0
        else
            idle=$((idle + 1))
            kill -0 "$runner" 2>/dev/null || idle=$patience
        fi
        [ "$idle" -ge "$patience" ] || sleep "$pause"
    done
}

# The processes whose working folder is the data folder. The id in postmaster.pid alone proves nothing: after a crash
# it may be the id of somebody else by now.
members() {
    if [ -d /proc/self/cwd ]; then
        ls -l /proc/[0-9]*/cwd 2>/dev/null | end=" -> $data" awk '
            substr($0, length($0) - length(ENVIRON["end"]) + 1) == ENVIRON["end"] {
                split($0, part, "/proc/")
                print part[2] + 0
            }'
    else
        id=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) &&
            case $(ps -o args= -p "$id") in *"$data"*) echo "$id" ;; esac
    fi
}

# Signals the main process, which the others follow, for up to $2 tenths of a second.
stop_by() {
    id=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) || return 0
    for member in $(members); do
        [ "$member" = "$id" ] && kill -s "$1" "$id" 2>/dev/null
    done
    left=$2
    while [ "$left" -gt 0 ] && [ -n "$(members)" ]; do
        sleep 0.1
        left=$((left - 1))
    done
}

if [ "$mode" = private ]; then
    cat >/dev/null
else
    # A process registers first and then looks for the file `ready`. So a folder is given up only when nobody was
    # registered after that file had gone.
    while :; do
        wait_until_unused
        mv "$folder/ready" "$folder/closed" 2>/dev/null
        used || break
        mv "$folder/closed" "$folder/ready" 2>/dev/null
    done
fi

stop_by INT 50
stop_by QUIT 20
for member in $(members); do
    kill -s KILL "$member" 2>/dev/null
done
rm -rf "$folder"

if [ "$mode" = shared ]; then
    # The entry that other processes of the run find the server by is removed while it still points here.
    [ "$(cat "$entry/current" 2>/dev/null)" = "$folder" ] && rm -rf "$entry"
fi
exit 0
