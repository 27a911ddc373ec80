/** Routes of the engine itself, and of exceptions to the policy. */
import { errors, joi } from '@portico/sdk';

import { type ExceptionRecord, isSubject } from '../policy/exceptions.ts';
import { refusedRules } from '../policy/judge.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { pageOf, paging } from './fields.ts';

const allow = joi
    .array()
    .items(
        joi.object({
            rule: joi
                .valid(...refusedRules)
                .required()
                .label('Rule'),
            service: joi.string().max(63).allow(null).default(null).label('Service'),
            detail: joi
                .string()
                .allow('')
                .max(4_096)
                .required()
                .label('Value')
                .description('Exactly as the finding shows it')
        })
    )
    .max(200)
    .required()
    .label('Allowed');
const exceptionSchema = joi.object({
    subject: joi
        .string()
        .required()
        .label('Subject')
        .meta({ ui: { column: 1 } }),
    allow,
    reason: joi
        .string()
        .required()
        .label('Reason')
        .meta({ ui: { column: 2 } }),
    by: joi
        .string()
        .allow(null)
        .required()
        .label('Allowed by')
        .meta({ ui: { column: 3 } }),
    at: joi.string().isoDate().required().label('Time')
});
const subjectParams = joi.object({
    subject: joi
        .string()
        .max(140)
        .required()
        .label('Subject')
        .description('`container:NAME` or `stack:NAME`')
        .meta({ ui: { ref: 'container.exceptions' } })
});

/** Registers the routes of the engine and of exceptions. */
export function registerEngineRoutes(ctx: Ctx, services: Services): void {
    registerEngine(ctx, services);
    registerExceptions(ctx, services);
}

function registerEngine(ctx: Ctx, { engine }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/engine',
        id: 'engine',
        access: 'read',
        summary: 'The engine',
        ui: { title: 'Engine', role: 'card', order: 8 },
        returns: joi.object({
            kind: joi.choice({ docker: 'Docker', podman: 'Podman' }).required().label('Engine'),
            version: joi.string().required().label('Version'),
            apiVersion: joi.string().required().label('Version of the API'),
            arch: joi.string().required().label('Architecture'),
            rootless: joi.boolean().required().label('Runs without root'),
            supports: joi.array().items(joi.string()).required().label('Can do')
        }),
        async handler() {
            const { kind, version, apiVersion, arch } = await engine.info();
            const { SecurityOptions: options } = await engine.call<{ SecurityOptions?: string[] | null }>(
                'GET',
                '/info',
                { patienceMs: 15_000 }
            );
            const rootless = (options ?? []).some((option) => option.includes('rootless'));
            const supports = kind === 'docker' ? ['imageCheck', 'updateInPlace', 'daemon'] : ['imageCheck'];
            return { kind, version, apiVersion, arch, rootless, supports };
        }
    });
}

const plain = ({ at, allow: allowed, ...record }: ExceptionRecord) => ({
    ...record,
    allow: allowed.map((each) => ({ ...each })),
    at: new Date(at).toISOString()
});

/** @throws NOT_FOUND 40400 */
function checkSubject(subject: string): string {
    if (!isSubject(subject)) {
        throw errors.notFound('A subject is container:NAME or stack:NAME');
    }
    return subject;
}

function registerExceptions(ctx: Ctx, { exceptions }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/exceptions',
        id: 'exceptions',
        access: 'read',
        summary: 'Exceptions to the policy',
        ui: { title: 'Exceptions', order: 7, label: 'subject', empty: 'The policy holds everywhere' },
        returns: joi.array().items(exceptionSchema),
        validate: { query: joi.object(paging) },
        async handler({ query }) {
            return pageOf((await exceptions.list()).map(plain), query, ({ subject }) => subject);
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/exceptions/{subject}',
        id: 'setException',
        access: 'unsafe',
        stepUp: true,
        summary: 'Allow what the policy refuses',
        description: 'An exception names rule, service and value exactly; it holds for the next change.',
        answers: 'done',
        ui: { title: 'Allow' },
        returns: exceptionSchema,
        audit: { action: 'allow', resource: 'exception' },
        validate: {
            params: subjectParams,
            payload: joi.object({
                allow,
                reason: joi.string().min(1).max(1_000).required().label('Reason')
            })
        },
        async handler({ params, payload, actor, audit }) {
            const subject = checkSubject(params.subject);
            const record = await exceptions.set({ subject, ...payload, by: actor.username });
            audit({ resourceId: subject, after: plain(record) });
            return plain(record);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/exceptions/{subject}',
        id: 'removeException',
        access: 'unsafe',
        stepUp: true,
        summary: 'Take an exception back',
        description: 'What runs goes on; the next change is refused.',
        answers: 'done',
        ui: { title: 'Take back', confirm: 'Take this exception back?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'exception' },
        validate: { params: subjectParams },
        async handler({ params, audit }) {
            audit({
                resourceId: params.subject,
                before: plain(await exceptions.remove(checkSubject(params.subject)))
            });
            return null;
        }
    });
}
