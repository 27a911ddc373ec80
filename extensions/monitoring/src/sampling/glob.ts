/** Patterns for names: `*` stands for any characters, `?` for one. */

/** Whether a name matches one of the patterns. Takes at most the product of both lengths, whatever the pattern. */
export function matchesAny(name: string, patterns: readonly string[]): boolean {
    return patterns.some((pattern) => matches(name, pattern));
}

function matches(name: string, pattern: string): boolean {
    let [at, in_, star, from] = [0, 0, -1, 0];
    while (at < name.length) {
        if (pattern[in_] === '*') {
            [star, from] = [in_, at];
            in_ += 1;
        } else if (in_ < pattern.length && (pattern[in_] === '?' || pattern[in_] === name[at])) {
            at += 1;
            in_ += 1;
        } else if (star >= 0) {
            from += 1;
            [at, in_] = [from, star + 1];
        } else {
            return false;
        }
    }
    return /^\**$/.test(pattern.slice(in_));
}
