/** Streams of what builds and releases print. */
import { type EventOf, joi } from '@portico/sdk';

import { stepNames } from '../deployments/steps.ts';
import { deploymentSchema, deploymentView } from '../projects/views.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { deploymentParams, projectParams } from './params.ts';

const lineSchema = joi.object({
    at: joi.string().isoDate().required().label('At'),
    step: joi.valid(...stepNames).label('Step'),
    process: joi.string().label('Program'),
    stream: joi.valid('stdout', 'stderr', 'panel').required().label('From'),
    text: joi.string().allow('').required().label('Text')
});
const buildEvents = { line: lineSchema, end: deploymentSchema };
const releaseEvents = { line: lineSchema, end: deploymentSchema };

/** Declares the streams of build logs and release logs. */
export function registerLogRoutes(ctx: Ctx, services: Services): void {
    registerBuildLog(ctx, services);
    registerReleaseLog(ctx, services);
}

function registerBuildLog(ctx: Ctx, { store, logs }: Services): void {
    ctx.stream({
        path: '/deployments/{id}/log',
        id: 'deploymentLog',
        access: 'logs',
        summary: 'What a deployment prints, as it comes',
        description:
            'Events `line`; at the end `end` with the deployment. `Last-Event-ID` continues behind a line.',
        ui: { title: 'Log', role: 'log' },
        validate: { params: deploymentParams },
        events: buildEvents,
        async handler({ params, lastEventId, signal }) {
            await store.deployment(params.id);
            const offset = lastEventId !== null && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : 0;
            const isOver = async (): Promise<boolean> =>
                (await store.deployment(params.id)).finishedAt !== null;
            return (async function* (): AsyncGenerator<EventOf<typeof buildEvents>> {
                for await (const { offset: id, line } of logs.follow(params.id, offset, isOver, signal)) {
                    yield { event: 'line', id: String(id), data: line };
                }
                if (!signal.aborted) {
                    yield { event: 'end', data: deploymentView(await store.deployment(params.id)) };
                }
            })();
        }
    });
}

function registerReleaseLog(ctx: Ctx, { store, processes }: Services): void {
    ctx.stream({
        path: '/projects/{id}/logs',
        id: 'releaseLogs',
        access: 'logs',
        summary: 'What the programs of the release that serves print',
        description:
            'Events `line`; the stream ends, with `end`, when the program is gone, and without `follow` at once.',
        ui: { title: 'Output', role: 'log' },
        validate: {
            params: projectParams,
            query: joi.object({
                process: joi
                    .string()
                    .pattern(/^[a-z][a-z0-9-]{0,19}$/)
                    .default('web')
                    .label('Program'),
                instance: joi.number().integer().min(0).max(31).default(0).label('Instance'),
                tail: joi.number().integer().min(0).max(10_000).default(200).label('Lines'),
                follow: joi.boolean().default(true).label('Follow')
            })
        },
        events: releaseEvents,
        async handler({ params, query, signal }) {
            const project = await store.anyProject(params.id);
            const deployment = project.live === null ? null : await store.deployment(project.live);
            const lines = deployment === null ? [] : processes.output(deployment, { ...query, signal });
            return (async function* (): AsyncGenerator<EventOf<typeof releaseEvents>> {
                for await (const { at, stream, text } of lines) {
                    yield {
                        event: 'line',
                        data: { at: at.toISOString(), process: query.process, stream, text }
                    };
                }
                if (deployment !== null && !signal.aborted) {
                    yield { event: 'end', data: deploymentView(await store.deployment(deployment.id)) };
                }
            })();
        }
    });
}
