/** The check at start: the end of the chain in the database against the head file beside it. */
import type { Head, StoredHead } from './head.ts';
import { type AuditKeys, type CheckpointRow, isSigned } from './keys.ts';
import { type AuditSource, type Break, compareHead } from './verify.ts';

/** Finds a break at the end of the chain; null when there is none. A head file that is one crash behind is no break. */
export function findBreak({
    source,
    keys,
    stored,
    head
}: {
    readonly source: AuditSource;
    readonly keys: AuditKeys;
    readonly stored: StoredHead;
    readonly head: Head;
}): Break | null {
    if (stored.state === 'missing') {
        return head.sequence === 0
            ? null
            : {
                  id: head.sequence + 1,
                  reason: 'HEAD_MISSING',
                  message: `The head file is missing: entries after ${head.sequence} may be missing`
              };
    }
    if (stored.state === 'invalid') {
        const point = source
            .prepare('select * from audit_checkpoints order by sequence desc limit 1')
            .get() as CheckpointRow | undefined;
        return point !== undefined && !isSigned(keys.checkpoints, point)
            ? {
                  id: head.sequence + 1,
                  reason: 'WRONG_KEY',
                  message:
                      'Neither the head file nor the last checkpoint was made with this key: the key file is another one'
              }
            : {
                  id: head.sequence + 1,
                  reason: 'HEAD_INVALID',
                  message: `The head file is not ours: entries after ${head.sequence} may be missing`
              };
    }
    const finding = compareHead(source, head.sequence, stored.head.sequence);
    if (finding !== null || stored.head.sequence === 0) {
        return finding;
    }
    const row = source.prepare('select hash from audit_entries where id = ?').get(stored.head.sequence) as
        { hash: string } | undefined;
    return row === undefined || row.hash === stored.head.hash
        ? null
        : {
              id: stored.head.sequence,
              reason: 'CHANGED',
              message: `Entry ${stored.head.sequence} is not the one that the head file knows`
          };
}
