/** A real database in a folder of its own, with the keys beside it. For tests of one feature's service. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { EntitySchema, MigrationObject } from '@mikro-orm/core';

import type { Call, Caller } from '../../../core/src/platform/call.ts';
import type { Clock } from '../../../core/src/platform/clock.ts';
import { type Database, openDatabase } from '../../../core/src/platform/database/database.ts';
import { createKeyring, type Keyring } from '../../../core/src/platform/keys/keyring.ts';
import { createLog, type Log } from '../../../core/src/platform/log/log.ts';
import type { AuditEntry } from '../../../core/src/server/http/ports.ts';

export interface Store {
    readonly folder: string;
    readonly file: string;
    readonly db: Database;
    readonly keyring: Keyring;
    readonly log: Log;
    /** The lines of the log. */
    readonly lines: string[];
    /** Closes the database and opens it again, as a restart does. */
    reopen(): Promise<Database>;
    /** Closes everything and removes the folder. */
    remove(): Promise<void>;
}

/** A clock that stands still until a test sets it. */
export interface HandClock extends Clock {
    time: number;
}

export function handClock(time = Date.UTC(2026, 0, 15, 12)): HandClock {
    return {
        time,
        now() {
            return this.time;
        }
    };
}

export async function openStore(tables: {
    readonly entities: readonly EntitySchema[];
    readonly migrations: readonly MigrationObject[];
}): Promise<Store> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-store-'));
    const file = join(folder, 'panel.db');
    const lines: string[] = [];
    let db = await openDatabase({ file, ...tables });
    return {
        folder,
        file,
        lines,
        get db() {
            return db;
        },
        keyring: createKeyring(folder),
        log: createLog({ level: 'debug', write: (line) => void lines.push(line) }),
        async reopen() {
            await db.close();
            db = await openDatabase({ file, ...tables });
            return db;
        },
        async remove() {
            await db.close();
            rmSync(folder, { recursive: true });
        }
    };
}

/** A caller with these permissions. */
export function person(
    username: string,
    permissions: readonly string[] = [],
    more: Partial<Caller> = {}
): Caller {
    return {
        kind: 'user',
        id: 1,
        username,
        role: 'admin',
        tokenId: null,
        sessionId: 1,
        plugin: null,
        fresh: true,
        permissions,
        key: `user:${username}`,
        can: (permission) => permissions.includes(permission),
        ...more
    };
}

/** A call that remembers how it was completed. */
export function callOf(actor: Caller, more: Partial<Call> = {}): Call & { readonly done: unknown[] } {
    const done: unknown[] = [];
    return {
        id: 'test-call',
        actor,
        ip: '203.0.113.7',
        userAgent: 'test',
        ifMatch: null,
        signal: new AbortController().signal,
        done,
        async complete(_tx, detail) {
            done.push(detail);
            return detail.reply;
        },
        ...more
    };
}

/** An audit entry with the fields that a test gives. */
export function entryOf(more: Partial<AuditEntry> = {}): AuditEntry {
    return {
        actor: { id: 1, username: 'admin', tokenId: null, plugin: null },
        action: 'create',
        resource: 'hosts',
        resourceId: 7,
        outcome: 'success',
        status: 201,
        code: 0,
        ip: '203.0.113.7',
        userAgent: 'test',
        requestId: 'r-1',
        ...more
    };
}
