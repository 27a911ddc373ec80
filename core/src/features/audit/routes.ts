/** `/api/audit`: lists, verifies and exports the audit log. Nothing is written here. */
import { reply } from '@portico/sdk';

import { readCursor, writeCursor } from '../../platform/cursor.ts';
import { download, json, type Route } from '../../server/http/route.ts';
import type { Audit } from './audit.ts';
import {
    entryListSchema,
    entrySchema,
    exportQuery,
    idParams,
    listQuery,
    namesSchema,
    verificationSchema
} from './schema.ts';
import type { AuditFilter } from './search/search.ts';

/** The routes of the audit log. */
export function auditRoutes(audit: Audit): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/audit',
            id: 'audit.list',
            access: 'audit:read',
            summary: 'List audit entries, newest first',
            validate: { query: listQuery },
            returns: entryListSchema,
            async handler({ query, signal }) {
                const { limit, cursor, ...filter } = query;
                const { entries, next, total } = await audit.list(filterOf(filter), {
                    limit,
                    before: readCursor('audit', cursor),
                    signal
                });
                return reply.list([...entries], {
                    next: next === null ? null : writeCursor('audit', next),
                    ...(total === undefined ? {} : { total })
                });
            }
        }),
        json({
            method: 'GET',
            path: '/api/audit/names',
            id: 'audit.names',
            access: 'audit:read',
            summary: 'List the actions and the kinds of things that entries name',
            returns: namesSchema,
            handler: () => audit.names()
        }),
        json({
            method: 'GET',
            path: '/api/audit/verify',
            id: 'audit.verify',
            access: 'audit:read',
            summary: 'Prove that no entry was changed, removed or inserted',
            timeoutSeconds: 900,
            returns: verificationSchema,
            handler: () => audit.verify()
        }),
        download({
            path: '/api/audit/export',
            id: 'audit.export',
            access: 'audit:read',
            summary: 'Every matching entry, oldest first, one JSON document a line',
            validate: { query: exportQuery },
            handler({ query, signal }) {
                const filter = filterOf(query);
                return {
                    size: null,
                    type: 'application/x-ndjson',
                    name: 'audit.ndjson',
                    open: () => linesOf(audit, filter, signal)
                };
            }
        }),
        json({
            method: 'GET',
            path: '/api/audit/{id}',
            id: 'audit.read',
            access: 'audit:read',
            summary: 'Read one audit entry',
            validate: { params: idParams },
            returns: entrySchema,
            handler: ({ params }) => audit.get(params.id)
        })
    ];
}

/** The entries as lines of JSON, handed over in chunks of about 32 KiB: a chunk for each line would cost more than the line. */
async function* linesOf(audit: Audit, filter: AuditFilter, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let text = '';
    for await (const entry of audit.export(filter, signal)) {
        text += `${JSON.stringify(entry)}\n`;
        if (text.length > 32 * 1024) {
            yield Buffer.from(text);
            text = '';
        }
    }
    yield Buffer.from(text);
}

function filterOf({
    from,
    to,
    ...filter
}: { readonly from?: string | undefined; readonly to?: string | undefined } & Omit<
    AuditFilter,
    'from' | 'to'
>): AuditFilter {
    return {
        ...filter,
        ...(from === undefined ? {} : { from: Date.parse(from) }),
        ...(to === undefined ? {} : { to: Date.parse(to) })
    };
}
