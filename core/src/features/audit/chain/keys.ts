/** The keys of the audit log, each derived for one purpose, and the signature of a checkpoint. */
import { createHmac } from 'node:crypto';

import { canonicalize } from '@portico/sdk';

import type { Keyring } from '../../../platform/keys/keyring.ts';

/** The keys of the audit log: for hashes of entries, signatures of checkpoints and the head file. */
export interface AuditKeys {
    readonly entries: Buffer;
    readonly checkpoints: Buffer;
    readonly head: Buffer;
}

/** A row of `audit_checkpoints`; `AuditCheckpointEntity` explains it. */
export interface CheckpointRow {
    readonly sequence: number;
    readonly kind: 'regular' | 'sealed';
    readonly hash: string;
    readonly at: number;
    readonly removed: number;
    readonly signature: string;
}

/** Derives the keys from the keyring. */
export function auditKeys(keyring: Pick<Keyring, 'derive'>): AuditKeys {
    return {
        entries: keyring.derive('audit'),
        checkpoints: keyring.derive('audit checkpoint'),
        head: keyring.derive('audit head')
    };
}

/** Adds the signature to a checkpoint. */
export function signCheckpoint(key: Buffer, row: Omit<CheckpointRow, 'signature'>): CheckpointRow {
    return { ...row, signature: signatureOf(key, row) };
}

/** Whether the signature of a checkpoint is made with this key. */
export function isSigned(key: Buffer, row: CheckpointRow): boolean {
    return signatureOf(key, row) === row.signature;
}

function signatureOf(key: Buffer, row: Omit<CheckpointRow, 'signature'>): string {
    const { sequence, kind, hash, at, removed } = row;
    return createHmac('sha256', key)
        .update(canonicalize({ sequence, kind, hash, at, removed }))
        .digest('hex');
}
