/** The fixed scripts of a unit, for `/bin/sh`. Each gets what it works with as arguments, and none runs with the environment of a service. */

/** Length of the file `runs`. It is always that long and is overwritten in place, which needs no free space. */
export const runsBytes = 256;

/**
 * Ends with an error, so that the unit is not started, when a service that is to run only once has done so.
 * Arguments: the service's folder.
 */
export const condition = 'cd "$1" && read -r exits failures due rest <runs && [ "$due" = 1 ]';

/** The scripts that are files in the folder of each service, so that the state of a unit stays readable. */
export const scriptFiles = { before: 'before.sh', after: 'after.sh' } as const;

/**
 * Runs before each run: lays the private files, waits longer after each failed run, and writes down that a run begins.
 * Arguments: the service's folder, the hash of its command, and the folder of private files (empty: it has none).
 */
export const before = `cd "$1" || exit 1
[ -z "$3" ] || cp -Rp "files-$2/." "$3/" || exit 1
read -r exits failures due open command started rest <runs || exit 1
pause=0
more=$failures
while [ "$more" -gt 1 ] && [ "$pause" -lt 60 ]; do
    pause=$((pause * 2 + 1))
    more=$((more - 1))
done
[ "$pause" -lt 60 ] || pause=60
[ "$pause" = 0 ] || sleep "$pause"
printf "%-${runsBytes - 1}s\\n" "$exits $failures 1 1 $2 $(date +%s%3N) $rest" 1<>runs
`;

/**
 * Runs after each run, and writes down how it ended. What the panel asked for, or the end of the machine, is no end by itself.
 * Arguments: the service's folder, and its policy.
 */
export const after = `cd "$1" && read -r exits failures due open command started rest <runs && read -r asked <asked || exit 0
[ "$open" = 1 ] && [ -n "$EXIT_CODE" ] || exit 0
now=$(date +%s%3N)
if [ "$asked" != 1 ]; then
    [ "$(systemctl is-system-running)" != stopping ] || exit 0
    exits=$((exits + 1))
    [ $((now - started)) -le 60000 ] || failures=0
    failures=$((failures + 1))
    case "$2 $EXIT_CODE $EXIT_STATUS" in
    "never exited 0" | "once exited 0" | "on-failure exited 0") failures=0 due=0 ;;
    never* | once*) due=0 ;;
    esac
fi
printf "%-${runsBytes - 1}s\\n" "$exits $failures $due 0 $command $started $now $SERVICE_RESULT $EXIT_CODE $EXIT_STATUS" 1<>runs
`;

/** Runs as root in the service's place: goes to the working folder. Arguments: that folder, and the next command. */
export const enter = 'cd -- "$1" && shift && exec "$@"';

/** Runs as the service's account: takes the environment from its input, since it is to be on no command line, and becomes the program. */
export const launch = 'unset PWD OLDPWD; eval "$(cat)" && exec "$@" </dev/null';
