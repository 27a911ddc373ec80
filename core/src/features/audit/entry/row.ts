/** An entry in its three forms: the row of the database, the text that is hashed, and what the API shows. */
import { createHmac } from 'node:crypto';

import type { RecordedActor } from '../../../platform/call.ts';
import type { AuditEntry } from '../../../server/http/ports.ts';
import { changesOf } from './changes.ts';
import { clean, cleanOrNull } from './text.ts';

/** A row of `audit_entries`. */
export interface EntryRow {
    readonly id: number;
    readonly at: number;
    readonly actor_id: number | null;
    readonly username: string | null;
    readonly token_id: number | null;
    readonly mandate_id: number | null;
    readonly plugin: string | null;
    readonly action: string;
    readonly resource: string;
    readonly resource_id: string | number | null;
    readonly outcome: 'success' | 'failure';
    readonly status: number | null;
    readonly code: number;
    readonly count: number;
    readonly ip: string | null;
    readonly user_agent: string | null;
    readonly request_id: string | null;
    readonly changes: string | null;
    readonly hash: string;
    readonly late: number;
}

/** A row before it has a place in the chain. */
export type Draft = Omit<EntryRow, 'id' | 'at' | 'hash' | 'late'>;

/** The columns in the order in which they are inserted. */
export const columns = [
    'id',
    'at',
    'actor_id',
    'username',
    'token_id',
    'mandate_id',
    'plugin',
    'action',
    'resource',
    'resource_id',
    'outcome',
    'status',
    'code',
    'count',
    'ip',
    'user_agent',
    'request_id',
    'changes',
    'hash',
    'late'
] as const satisfies readonly (keyof EntryRow)[];

/** An entry as the API shows it. */
export interface EntryView {
    readonly id: number;
    /** RFC 3339, UTC. */
    readonly at: string;
    readonly actor: RecordedActor;
    readonly action: string;
    readonly resource: string;
    readonly resourceId: string | number | null;
    readonly outcome: 'success' | 'failure';
    readonly status: number | null;
    readonly code: number;
    /** How many equal refusals the entry stands for; 1 for everything else. */
    readonly count: number;
    readonly ip: string | null;
    readonly userAgent: string | null;
    readonly requestId: string | null;
    readonly changes: Readonly<Record<string, unknown>> | null;
    readonly hash: string;
}

const nameLength = 128;
const idLength = 256;

/** Turns an entry into a row: bounds and cleans its texts, and masks the secrets in its changes. No later step masks anything. */
export function draftOf(entry: AuditEntry, count: number): Draft {
    return {
        actor_id: entry.actor.id,
        username: cleanOrNull(entry.actor.username, nameLength),
        token_id: entry.actor.tokenId,
        mandate_id: entry.actor.mandateId ?? null,
        plugin: cleanOrNull(entry.actor.plugin, nameLength),
        action: clean(entry.action, nameLength),
        resource: clean(entry.resource, nameLength),
        resource_id: resourceIdOf(entry.resourceId ?? null),
        outcome: entry.outcome,
        status: entry.status,
        code: entry.code,
        count,
        ip: cleanOrNull(entry.ip, 64),
        user_agent: cleanOrNull(entry.userAgent, 512),
        request_id: cleanOrNull(entry.requestId, nameLength),
        changes: changesOf(entry.before, entry.after)
    };
}

/** A resource id as it is stored. An integer written as text becomes the integer, so that a filter finds both. */
export function resourceIdOf(value: string | number | null): string | number | null {
    if (typeof value === 'number') {
        return Number.isSafeInteger(value) ? value : String(value);
    }
    return value !== null && /^(?:0|[1-9]\d{0,14})$/.test(value)
        ? Number(value)
        : cleanOrNull(value, idLength);
}

/**
 * The hash of an entry: HMAC-SHA256, hexadecimal, over the RFC 8785 text of the entry as the API shows it, without `hash` and with
 * `previous`, the hash of the entry before it. The keys below are in canonical order, and `changes` is stored as canonical text.
 */
export function hashOf(key: Buffer, row: Omit<EntryRow, 'hash' | 'late'>, previous: string): string {
    // Entries of older versions, which know no mandates, keep their hash.
    const mandate = (row.mandate_id ?? null) === null ? '' : `,"mandateId":${row.mandate_id}`;
    const text =
        `{"action":${JSON.stringify(row.action)},"actor":{"id":${row.actor_id}${mandate},"plugin":${JSON.stringify(row.plugin)},"tokenId":${row.token_id},"username":${JSON.stringify(row.username)}}` +
        `,"at":"${new Date(row.at).toISOString()}","changes":${row.changes},"code":${row.code},"count":${row.count},"id":${row.id},"ip":${JSON.stringify(row.ip)}` +
        `,"outcome":${JSON.stringify(row.outcome)},"previous":"${previous}","requestId":${JSON.stringify(row.request_id)},"resource":${JSON.stringify(row.resource)}` +
        `,"resourceId":${JSON.stringify(row.resource_id)},"status":${row.status},"userAgent":${JSON.stringify(row.user_agent)}}`;
    return createHmac('sha256', key).update(text).digest('hex');
}

/** An entry as the API shows it. */
export function viewOf(row: EntryRow): EntryView {
    return {
        id: row.id,
        at: new Date(row.at).toISOString(),
        actor: {
            id: row.actor_id,
            username: row.username,
            tokenId: row.token_id,
            ...((row.mandate_id ?? null) === null ? {} : { mandateId: row.mandate_id as number }),
            plugin: row.plugin
        },
        action: row.action,
        resource: row.resource,
        resourceId: row.resource_id,
        outcome: row.outcome,
        status: row.status,
        code: row.code,
        count: row.count,
        ip: row.ip,
        userAgent: row.user_agent,
        requestId: row.request_id,
        changes: parsed(row.changes),
        hash: row.hash
    };
}

/** The stored changes. A list still shows a row that was tampered with; only the verification judges it. */
function parsed(changes: string | null): Readonly<Record<string, unknown>> | null {
    if (changes === null) {
        return null;
    }
    try {
        const value: unknown = JSON.parse(changes);
        return typeof value === 'object' && value !== null && !Array.isArray(value)
            ? (value as Record<string, unknown>)
            : { unreadable: changes };
    } catch {
        return { unreadable: changes };
    }
}
