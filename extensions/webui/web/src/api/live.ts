/** The panel's own events: they make stale what they name, so that pages show the present without asking every second. */
import { Store } from '../kit/store.ts';
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
/** Whether the panel can be reached: false from a cut of its events until they come again. */
export const isReached = new Store(true);

const hiddenFor = 30_000;

/** Follows `GET /api/events` while the page is seen, and gives the connection back when it was hidden for a while. Returns what ends it. */
export function followPanel(): () => void {
    let controller: AbortController | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const start = (): void => {
        controller ??= new AbortController();
        const { signal } = controller;
        const tell = ({ event }: { readonly event: string }): void => void take(event);
        void follow('/api/events', tell, signal, reach).catch(() => undefined);
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

/** After a cut, what is shown may be old: all of it is read again. */
function reach(isOpen: boolean): void {
    if (isOpen && !isReached.value) {
        void queries.invalidateQueries();
    }
    if (isOpen !== isReached.value) {
        isReached.set(isOpen);
    }
}

async function take(topic: string): Promise<void> {
    if (topic === 'gap' || topic === 'routes' || topic === 'plugins') {
        await queries.invalidateQueries();
    } else if (paths[topic] !== undefined) {
        await invalidate(paths[topic]);
    }
}
