/** The routes of uptime checks. */
import { joi, pages, reply } from '@portico/sdk';

import { type Checks, maskedHeaders } from '../checks/checks.ts';
import type { Outcome } from '../checks/probes/outcome.ts';
import type { Uptime } from '../checks/results.ts';
import {
    changedCheck,
    checkSchema,
    type CheckView,
    kinds,
    newCheck,
    resultSchema,
    type ResultView,
    states
} from '../checks/schema.ts';
import type { SeenCheck } from '../checks/state.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Check')
        .meta({ ui: { ref: 'monitoring.checks' } })
});
const time = joi.string().isoDate();

/** Declares `/checks` and everything below it. */
export function registerCheckRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services.checks);
    registerChanges(ctx, services);
    registerTries(ctx, services);
}

function registerReads(ctx: Ctx, checks: Checks): void {
    ctx.route({
        method: 'GET',
        path: '/checks',
        id: 'checks',
        access: 'read',
        summary: 'Uptime checks',
        ui: { title: 'Checks', order: 6, label: 'name', empty: 'No check yet' },
        returns: joi.array().items(checkSchema),
        validate: {
            query: joi.object({
                state: joi.valid(...states).label('State'),
                kind: joi.valid(...kinds).label('Kind'),
                tag: joi.string().max(50).label('Tag'),
                q: joi.string().max(100).label('Search').description('A part of the name or the target'),
                ...pages.query()
            })
        },
        async handler({ query }) {
            const q = query.q?.toLowerCase();
            const found = checks
                .list()
                .filter(
                    (check) =>
                        (query.state === undefined || stateOf(check) === query.state) &&
                        (query.kind === undefined || check.fields.kind === query.kind) &&
                        (query.tag === undefined || check.fields.tags.includes(query.tag)) &&
                        (q === undefined ||
                            `${check.fields.name}\n${check.fields.target}`.toLowerCase().includes(q))
                );
            const { rows, page } = pages.sorted(found, query, ({ id }) => id);
            return reply.list(await viewAll(checks, rows), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/checks/{id}',
        id: 'check',
        access: 'read',
        summary: 'One uptime check',
        returns: checkSchema,
        validate: { params },
        handler: async ({ params: { id } }) => reply.with(await view(checks, checks.get(id)), {})
    });
    ctx.route({
        method: 'GET',
        path: '/checks/{id}/results',
        id: 'checkResults',
        access: 'read',
        summary: 'How the tries of a check ended',
        ui: { title: 'Results', empty: 'Not tried yet' },
        returns: joi.array().items(resultSchema),
        description:
            'Newest first. All tries of the last day; before that those that were not good, and those that changed the state, for `checkHistoryDays`.',
        validate: {
            params,
            query: joi.object({
                from: time.label('From'),
                to: time.label('To'),
                ...pages.query()
            })
        },
        async handler({ params: { id }, query }) {
            checks.get(id);
            const before =
                pages.afterNumber(query) ?? (query.to === undefined ? Infinity : Date.parse(query.to));
            const found = await checks.results.list(id, {
                from: query.from === undefined ? 0 : Date.parse(query.from),
                before: Number.isFinite(before) ? before : Number.MAX_SAFE_INTEGER,
                limit: query.limit + 1
            });
            const { rows, page } = pages.read(found, query.limit, ({ at }) => at);
            return reply.list(
                rows.map(({ latency, ...row }) => resultOf({ ...row, latencyMs: latency }, row.at)),
                page
            );
        }
    });
}

function registerChanges(ctx: Ctx, { checks, tries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/checks',
        id: 'createCheck',
        access: 'write',
        summary: 'Make an uptime check',
        answers: 'made',
        ui: { title: 'New check', primary: true },
        returns: checkSchema,
        audit: { action: 'create', resource: 'check' },
        description:
            'It is tried at once, then every `intervalSeconds`. A caller who has tried 60 times in the last minute waits for its turn. The rules on `check.up` and `check.certificateDays` tell of it.',
        validate: { payload: newCheck },
        async handler({ payload, actor, audit }) {
            const check = await checks.create(payload, () => tries.allows(actor));
            audit({ resourceId: check.id, after: auditRecord(check) });
            return reply.created(`/api/plugins/${ctx.name}/checks/${check.id}`, await view(checks, check));
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/checks/{id}',
        id: 'changeCheck',
        access: 'write',
        summary: 'Change an uptime check',
        answers: 'done',
        ui: { title: 'Change' },
        returns: checkSchema,
        audit: { action: 'update', resource: 'check' },
        description: 'Another kind or target makes its state unknown until the next try. Its results stay.',
        validate: { params, payload: changedCheck },
        async handler({ params: { id }, payload, ifMatch, actor, audit }) {
            audit({ resourceId: id });
            const before = auditRecord(checks.get(id));
            const check = await checks.update(id, payload, ifMatch, () => tries.allows(actor));
            audit({ before, after: auditRecord(check) });
            return reply.with(await view(checks, check), {});
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/checks/{id}',
        id: 'removeCheck',
        access: 'write',
        summary: 'Remove an uptime check',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this check and its results?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'check' },
        validate: { params },
        async handler({ params: { id }, ifMatch, audit }) {
            audit({ resourceId: id });
            audit({ before: auditRecord(await checks.remove(id, ifMatch)) });
            return reply.with(null, {});
        }
    });
}

function registerTries(ctx: Ctx, { checks, monitor, tries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/checks/test',
        id: 'testCheck',
        access: 'write',
        summary: 'Try a check without saving it',
        answers: 'done',
        ui: { title: 'Test', role: 'action' },
        returns: resultSchema,
        audit: { action: 'test', resource: 'check' },
        timeoutSeconds: 75,
        validate: { payload: newCheck },
        async handler({ payload, actor, signal }) {
            tries.take(actor);
            const outcome = await checks.test(payload, signal);
            return resultOf(outcome, monitor.now());
        }
    });
    ctx.route({
        method: 'POST',
        path: '/checks/{id}/run',
        id: 'runCheck',
        access: 'write',
        summary: 'Try a check now',
        answers: 'done',
        ui: { title: 'Try now', role: 'action' },
        returns: resultSchema,
        audit: { action: 'run', resource: 'check' },
        timeoutSeconds: 75,
        description: 'It counts as any other try, but for a check that is switched off.',
        validate: { params },
        async handler({ params: { id }, actor, audit }) {
            audit({ resourceId: id });
            tries.take(actor);
            const { outcome, at } = await checks.run(id);
            return resultOf(outcome, at);
        }
    });
}

function stateOf({ fields: { enabled }, status: { state } }: SeenCheck): CheckView['state'] {
    return enabled ? state : 'paused';
}

async function viewAll(checks: Checks, rows: readonly SeenCheck[]): Promise<readonly CheckView[]> {
    const uptimes = await checks.uptimes(rows);
    return rows.map((row) => viewOf(checks, row, uptimes.get(row.id)));
}

async function view(checks: Checks, check: SeenCheck): Promise<CheckView> {
    return viewOf(checks, check, (await checks.uptimes([check])).get(check.id));
}

function viewOf(checks: Checks, check: SeenCheck, uptime: Uptime | undefined): CheckView {
    const { id, fields, status, version, createdAt, updatedAt } = check;
    const { headers: _headers, expect, tags, ...rest } = fields;
    const { certificate } = status;
    return {
        ...{ id, version, ...rest },
        tags: [...tags],
        expect: { ...expect, ...maskedHeaders(fields) },
        state: stateOf(check),
        since: status.at === 0 ? null : new Date(status.since).toISOString(),
        latencyMs: status.latencyMs,
        lastError: status.message,
        checkedAt: status.at === 0 ? null : new Date(status.at).toISOString(),
        certificate:
            certificate === null
                ? null
                : {
                      issuer: certificate.issuer,
                      notAfter: new Date(certificate.notAfter).toISOString(),
                      daysLeft: checks.daysLeft(certificate.notAfter)
                  },
        uptime: uptime === undefined ? { day: null, week: null, month: null } : { ...uptime },
        createdAt: new Date(createdAt).toISOString(),
        updatedAt: new Date(updatedAt).toISOString()
    };
}

function resultOf(
    { state, latencyMs, code, message, phases }: Omit<Outcome, 'certificate'>,
    at: number
): ResultView {
    return { at: new Date(at).toISOString(), state, latencyMs, code, message, phases: { ...phases } };
}

/** What the audit log keeps of a check: no value of a header. */
function auditRecord({ fields }: SeenCheck) {
    const { headers: _headers, ...rest } = fields;
    return { ...rest, expect: { ...rest.expect, ...maskedHeaders(fields) } };
}
