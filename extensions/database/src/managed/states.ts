/** States of servers that the panel runs. */
import type { ServiceInfo } from '@portico/sdk';

import type { ManagedRow } from '../entities.ts';
import type { Reached } from '../servers/connections.ts';

/** What an answer shows of a server that the panel runs. */
export interface ManagedState {
    readonly state: 'online' | 'offline' | 'starting' | 'stopped' | 'failed' | 'upgrading';
    readonly message: string | null;
}

/** How long a server may take until it answers. */
export const startSeconds = 60;

/** The state of a server, from its record, its service and the last answer. */
export function stateOf(
    { phase }: ManagedRow,
    info: ServiceInfo | undefined,
    reached: Reached
): ManagedState {
    if (phase === 'creating') {
        return { state: 'starting', message: 'It is being made' };
    }
    if (phase === 'upgrading' || (phase === 'switching' && info?.state !== 'failed')) {
        return {
            state: 'upgrading',
            message: phase === 'upgrading' ? 'Its data go to another release' : 'It begins on another release'
        };
    }
    if (phase !== 'ready' && phase !== 'switching') {
        return { state: 'stopped', message: 'It is being removed' };
    }
    if (info === undefined) {
        return { state: 'failed', message: 'Its service is gone' };
    }
    if (info.state !== 'running') {
        return { state: info.state, message: info.state === 'failed' ? exitOf(info) : null };
    }
    if (reached.state === 'offline' && Date.now() - Number(info.startedAt) < startSeconds * 1_000) {
        return { state: 'starting', message: reached.message };
    }
    return reached;
}

function exitOf({ lastExit }: ServiceInfo): string {
    const how =
        lastExit === null
            ? 'it could not be started'
            : lastExit.limit === 'memory'
              ? 'its memory was used up'
              : `it ended with ${lastExit.signal ?? lastExit.code}`;
    return `${how}; its log says more`;
}
