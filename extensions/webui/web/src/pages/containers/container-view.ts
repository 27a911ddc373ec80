/** What the screens of containers read and do. */
import { useEffect, useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { follow } from '../../api/streams.ts';
import { carryOut } from '../../kit/dialogs/carry-out.ts';
import type { Tone } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

/** Where the routes of the plugin are. */
export const base = '/api/plugins/container';

/** A container in the list. */
export interface Container {
    readonly id: string;
    readonly name: string;
    readonly image: string;
    readonly state: string;
    readonly health: 'none' | 'starting' | 'healthy' | 'unhealthy';
    readonly ports: readonly Port[];
    readonly stack: string | null;
    readonly service: string | null;
    /** The plugin that made it. */
    readonly owner: string | null;
}

/** A port of a container that is published. */
interface Port {
    readonly containerPort: number;
    readonly protocol: string;
    readonly hostPort: number;
    readonly hostIp: string;
}

/** Figures of one container at one moment. */
export interface Stats {
    readonly id: string;
    readonly at: string;
    readonly cpuPercent: number;
    readonly memoryBytes: number;
    readonly memoryLimitBytes: number;
    readonly netRxBytes: number;
    readonly netTxBytes: number;
}

/** Colours of the states of containers. */
export const tones: Readonly<Record<string, Tone>> = {
    running: 'good',
    restarting: 'busy',
    created: 'neutral',
    paused: 'warning',
    exited: 'neutral',
    dead: 'bad'
};

/** What can be done to a container in a state, by the last part of its path; the first is what is done most. */
export function actionsOf({ state }: Pick<Container, 'state'>): readonly { path: string; title: string }[] {
    switch (state) {
        case 'running':
        case 'restarting':
            return [
                { path: 'restart', title: t('Restart') },
                { path: 'stop', title: t('Stop') }
            ];
        case 'paused':
            return [{ path: 'unpause', title: t('Go on') }];
        default:
            return [{ path: 'start', title: t('Start') }];
    }
}

/** Does it, and reads the containers again. Failures are shown. */
export function act(id: string, { path, title }: { path: string; title: string }): Promise<void> {
    const address = `${base}/containers/${encodeURIComponent(id)}/${path}`;
    return carryOut(title, base, () => call('POST', address, { body: {} }));
}

/** A port in words: `127.0.0.1:8080 → 80`. */
export const portText = ({ containerPort, protocol, hostPort, hostIp }: Port): string =>
    `${hostIp}:${hostPort} → ${containerPort}${protocol === 'tcp' ? '' : `/${protocol}`}`;

/** Follows events of the plugin while the screen is shown. Null for a path: nothing is followed. */
export function useEvents(path: string | null, tell: (data: unknown) => void): void {
    useEffect(() => {
        if (path === null) {
            return undefined;
        }
        const controller = new AbortController();
        follow(path, ({ data }) => tell(data), controller.signal).catch(() => undefined);
        return () => controller.abort();
    }, [path]);
}

/** The newest figures of all containers, by their id. */
export function useStats(): ReadonlyMap<string, Stats> {
    const [all, setAll] = useState<ReadonlyMap<string, Stats>>(new Map());
    useEvents(`${base}/stats`, (data) => {
        const stats = data as Stats;
        setAll((before) => new Map(before).set(stats.id, stats));
    });
    return all;
}
