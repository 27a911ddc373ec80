/** What the screens of deployments read. */
import type { Tone } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

/** A project, as the API gives it. */
export interface Project {
    readonly id: number;
    readonly name: string;
    readonly state: string;
    readonly live: number | null;
    readonly hostId: number | null;
}

/** One step of a deployment. */
export interface Step {
    readonly name: string;
    readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'skipped';
    readonly seconds: number | null;
}

/** A deployment of a project, as the API gives it. */
export interface Deployment {
    readonly id: number;
    readonly number: number;
    readonly trigger: string;
    readonly ref: string | null;
    readonly commit: string | null;
    readonly message: string | null;
    readonly author: string | null;
    readonly state: string;
    readonly reason: string | null;
    readonly artifact: { readonly bytes: number } | null;
    readonly kept: boolean;
    readonly steps: readonly Step[];
    readonly queuedAt: string;
    readonly switchedAt: string | null;
    readonly finishedAt: string | null;
}

/** Where the routes of the plugin are. */
export const base = '/api/plugins/deploy';

/** Colours of the states of projects, deployments and previews. */
export const tones: Readonly<Record<string, Tone>> = {
    live: 'good',
    failed: 'bad',
    cancelled: 'warning',
    stopped: 'warning',
    deploying: 'busy',
    building: 'busy',
    releasing: 'busy',
    canary: 'busy',
    'awaiting-approval': 'warning'
};

/** States of previews in words. */
export const previewStates = (): Readonly<Record<string, string>> => ({
    'awaiting-approval': t('waits for approval'),
    building: t('is being built'),
    live: t('serves'),
    failed: t('failed'),
    closed: t('is over')
});

/** Whether a deployment is under way. */
export const isActive = ({ state }: Deployment): boolean =>
    ['queued', 'building', 'releasing', 'canary'].includes(state);

/** What asked for it, in words. */
export function triggerOf({ trigger }: Deployment): string {
    const known: Readonly<Record<string, string>> = {
        manual: t('by a user'),
        push: t('by a push'),
        poll: t('by a new commit'),
        rollback: t('the way back'),
        preview: t('a pull request')
    };
    return known[trigger] ?? trigger;
}
