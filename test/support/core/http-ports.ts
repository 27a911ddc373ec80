/** Doubles of the HTTP factory's ports: a few fixed callers, and an audit log and idempotency keys in memory. For tests of the factory alone. */
import type { Caller } from '../../../core/src/platform/call.ts';
import { fail } from '../../../core/src/platform/errors.ts';
import { createLog } from '../../../core/src/platform/log/log.ts';
import { requireAccess } from '../../../core/src/server/http/access.ts';
import type { AuditEntry, HttpPorts, KeptReply } from '../../../core/src/server/http/ports.ts';

export interface TestPorts extends HttpPorts {
    readonly recorded: AuditEntry[];
    readonly refusals: AuditEntry[];
    /** Ends the session of a caller, with its streams and sockets. */
    end(username: string): void;
    readonly lines: string[];
}

export function caller(username: string, permissions: readonly string[], more: Partial<Caller> = {}): Caller {
    return {
        kind: 'user',
        id: 1,
        username,
        role: username,
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

/** Makes the ports. `Bearer admin` has every permission of `things`, `Bearer viewer` has `things:read`. */
export function createTestPorts(): TestPorts {
    const recorded: AuditEntry[] = [];
    const refusals: AuditEntry[] = [];
    const lines: string[] = [];
    const listeners = new Map<string, Set<() => void>>();
    const kept = new Map<string, { fingerprint: string; answer: KeptReply | null }>();
    const callers = new Map(
        [caller('admin', ['things:read', 'things:write']), caller('viewer', ['things:read'])].map((each) => [
            each.username,
            each
        ])
    );
    const anonymous = caller('nobody', [], {
        kind: 'anonymous',
        id: null,
        username: null,
        role: null,
        sessionId: null,
        fresh: false,
        key: 'anonymous'
    });
    return {
        recorded,
        refusals,
        lines,
        end: (username) => listeners.get(username)?.forEach((listener) => listener()),
        authenticator: {
            anonymous,
            bearer(token) {
                const found = callers.get(token);
                if (found === undefined) {
                    throw fail.TOKEN_INVALID();
                }
                return found;
            },
            async ticket(ticket) {
                if (ticket !== 'good') {
                    throw fail.TOKEN_INVALID();
                }
                return callers.get('viewer') as Caller;
            },
            admit(who, route) {
                requireAccess(who, route);
            },
            onEnd(who, _route, ended) {
                const name = who.username ?? '';
                const set = listeners.get(name) ?? new Set();
                listeners.set(name, set.add(ended));
                return () => set.delete(ended);
            }
        },
        recorder: {
            record: async (_tx, entry) => void recorded.push(entry),
            recordAlone: async (entry) => void recorded.push(entry),
            refused: async (entry) => void refusals.push(entry)
        },
        idempotency: {
            async claim(who, key, fingerprint) {
                const found = kept.get(`${who.key} ${key}`);
                if (found === undefined) {
                    const entry: { fingerprint: string; answer: KeptReply | null } = {
                        fingerprint,
                        answer: null
                    };
                    kept.set(`${who.key} ${key}`, entry);
                    const keep = async (answer: KeptReply): Promise<void> => {
                        entry.answer = answer;
                    };
                    return {
                        first: {
                            keep: (_tx, answer) => keep(answer),
                            keepAlone: keep,
                            end: () => undefined
                        }
                    };
                }
                if (found.fingerprint !== fingerprint) {
                    throw fail.IDEMPOTENCY_MISMATCH();
                }
                if (found.answer === null) {
                    throw fail.IDEMPOTENCY_UNRESOLVED();
                }
                return { replay: found.answer };
            }
        },
        clientAddress: (peer) => peer,
        corsOrigins: () => ['https://panel.example'],
        origin: (host) => `http://${host}`,
        log: createLog({ level: 'info', write: (line) => lines.push(line) }),
        checkReturns: true
    };
}
