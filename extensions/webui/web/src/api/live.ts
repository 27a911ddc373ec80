/** The panel's own events: they make stale what they name, so that pages show the present without asking every second. */
import { invalidate, queries } from './queries.ts';
import { follow } from './streams.ts';

const paths: Readonly<Record<string, string>> = {
    hosts: '/api/hosts',
    certificates: '/api/certificates',
    'dns-providers': '/api/dns-providers',
    engine: '/api/proxyengine',
    settings: '/api/settings',
    users: '/api/users',
    tasks: '/api/tasks',
    plugins: '/api/plugins',
    audit: '/api/audit'
};
const hiddenFor = 30_000;

/** Follows `GET /api/events` while the page is seen, and gives the connection back when it was hidden for a while. Returns what ends it. */
export function followPanel(): () => void {
    let controller: AbortController | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const start = (): void => {
        controller ??= new AbortController();
        const { signal } = controller;
        void follow('/api/events', ({ event }) => void take(event), signal).catch(() => undefined);
    };
    const stop = (): void => {
        controller?.abort();
        controller = null;
    };
    const look = (): void => {
        clearTimeout(timer);
        if (document.hidden) {
            timer = setTimeout(stop, hiddenFor);
        } else if (controller === null) {
            start();
            void queries.invalidateQueries();
        }
    };
    document.addEventListener('visibilitychange', look);
    start();
    return () => {
        clearTimeout(timer);
        document.removeEventListener('visibilitychange', look);
        stop();
    };
}

async function take(topic: string): Promise<void> {
    if (topic === 'gap' || topic === 'routes' || topic === 'plugins') {
        await queries.invalidateQueries();
    } else if (paths[topic] !== undefined) {
        await invalidate(paths[topic]);
    }
}
