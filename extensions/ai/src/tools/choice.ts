/** Which routes fit a question: those that share its rarest words. */
import type { RouteInfo } from '@portico/sdk';

/** What words of questions mean in the words of routes. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
    site: ['host'],
    website: ['host'],
    domain: ['host'],
    proxy: ['host', 'engine', 'upstream'],
    caddy: ['engine', 'proxyengine'],
    serve: ['host', 'engine', 'upstream'],
    down: ['host', 'engine', 'upstream', 'unhealthy', 'status'],
    unreachable: ['host', 'upstream', 'status'],
    tls: ['certificate'],
    ssl: ['certificate'],
    https: ['certificate'],
    cert: ['certificate'],
    cpu: ['metric', 'monitoring'],
    memory: ['metric', 'monitoring'],
    disk: ['metric', 'monitoring'],
    alert: ['monitoring', 'rule'],
    docker: ['container'],
    cron: ['cronjob', 'task', 'schedule'],
    why: ['status', 'log', 'unhealthy'],
    error: ['log', 'status'],
    broken: ['status', 'log', 'unhealthy'],
    failed: ['status', 'log', 'unhealthy'],
    account: ['user'],
    login: ['auth', 'user', 'audit'],
    who: ['audit', 'user'],
    changed: ['audit', 'revision']
};
/** Words that say nothing of what is meant. */
const empty = new Set(
    'a an and are as at be by can did do does for from have how i in is it me my no not of on or our please show tell that the their them there these this to was we what when where which will with you your'.split(
        ' '
    )
);

/** Words of a text, as they are compared. */
export function wordsOf(text: string): string[] {
    const words = text
        .replace(/([a-z])([A-Z])/g, '$1 $2')
        .toLowerCase()
        .match(/[\p{L}\p{N}]{2,}/gu);
    return (words ?? []).filter((word) => !empty.has(word)).map(stem);
}

/** The routes that fit, the best first; those that share no word are left out. */
export function rank(routes: readonly RouteInfo[], question: string): RouteInfo[] {
    const asked = new Map<string, number>();
    for (const word of wordsOf(question.slice(0, 20_000))) {
        asked.set(word, 1);
        (synonyms[word] ?? []).forEach((other) => asked.set(other, Math.max(asked.get(other) ?? 0, 0.6)));
    }
    const all = routes.map((info) => ({ info, words: documentOf(info) }));
    const frequency = new Map<string, number>();
    all.forEach(({ words }) =>
        words.forEach((_weight, word) => frequency.set(word, (frequency.get(word) ?? 0) + 1))
    );
    return all
        .map(({ info, words }) => {
            let score = 0;
            for (const [word, weight] of asked) {
                const found = words.get(word) ?? 0;
                score += found * weight * Math.log(1 + routes.length / (frequency.get(word) ?? 1));
            }
            // A question is answered by looking first.
            return { info, score: info.effect === 'read' ? score * 1.15 : score };
        })
        .filter(({ score }) => score > 0)
        .sort((one, other) => other.score - one.score || (one.info.id < other.info.id ? -1 : 1))
        .map(({ info }) => info);
}

/** The words of routes, which stay the same while their plugin runs. */
const documents = new WeakMap<RouteInfo, ReadonlyMap<string, number>>();

/** Words of a route with their weights: its id counts most. */
function documentOf(info: RouteInfo): ReadonlyMap<string, number> {
    const known = documents.get(info);
    if (known !== undefined) {
        return known;
    }
    const { id, path, summary, description } = info;
    const words = new Map<string, number>();
    const add = (text: string, weight: number): void =>
        wordsOf(text).forEach((word) => words.set(word, Math.max(words.get(word) ?? 0, weight)));
    add(description, 0.4);
    add(path, 0.8);
    add(summary, 1);
    add(id, 1.2);
    documents.set(info, words);
    return words;
}

/** Endings that a question and a route may differ in. */
function stem(word: string): string {
    return word.length < 5
        ? word
        : word
              .replace(/ies$/, 'y')
              .replace(/([^s])s$/, '$1')
              .replace(/(.{3,})(?:ing|ed)$/, '$1');
}
