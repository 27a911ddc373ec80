/** Diagnosis, documents that are checked before they are shown, and reviews. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createFailure } from '@portico/sdk';

import { type AiRig, type Any, createAiRig, dataOf, type Event, namesOf } from './rig.ts';

export const lab = Lab.script();
const { after, before, beforeEach, describe, it } = lab;

const finding = {
    severity: 'critical',
    subject: 'nginx',
    message: 'The port is taken',
    evidence: 'bind() failed',
    remedy: 'Stop the other one',
    route: null
};
const report = (...findings: object[]): object => ({
    calls: [{ name: 'report_findings', input: { findings } }]
});
const submit = (content: string): object => ({ calls: [{ name: 'submit_document', input: { content } }] });
const goodCompose = 'services:\n  web:\n    image: nginx:1.29\n    ports: ["8080:80"]\n';

describe('documents', { timeout: 60_000 }, () => {
    let rig: AiRig;
    const reader = { username: 'olga', permissions: ['read', 'chat', 'logs:read', 'hosts:read'] };
    const stream = async (path: string, body: object): Promise<Event[]> =>
        (await Array.fromAsync(rig.host.as(reader).events(path, { method: 'POST', body }))) as Event[];

    before(async () => {
        rig = await createAiRig();
        rig.host.api.route({
            id: 'engine.logs',
            summary: 'Read the log',
            permission: 'logs:read',
            handler: () => ({ lines: ['password=tiger99', 'bind() to 0.0.0.0:80 failed'] })
        });
        rig.host.api.route({
            id: 'engine.secret',
            summary: 'Read more',
            permission: 'other:read',
            handler: () => 'x'
        });
        rig.host.api.route({
            id: 'engine.stop',
            method: 'POST',
            summary: 'Stop after a bind failed',
            permission: 'logs:read',
            handler: () => null
        });
        rig.host.api.route({
            id: 'hosts.validate',
            method: 'POST',
            effect: 'read',
            permission: 'hosts:read',
            handler: ({ payload }) => {
                if ((payload as { domain?: string }).domain !== 'good.example') {
                    throw createFailure({
                        code: 40001,
                        reason: 'VALIDATION_FAILED',
                        message: 'The request does not have the documented shape',
                        data: { errors: [{ path: 'domain', message: 'domain is required' }] }
                    });
                }
                return { reload: true };
            }
        });
    });
    beforeEach(() => rig.model.reset());
    after(() => rig?.close());

    it('POST /diagnose reports findings on a log, and may read but not change', async () => {
        rig.model.say(
            { text: 'Port 80 is taken.', calls: [{ name: 'engine__logs', input: {} }] },
            report(finding)
        );
        const events = await stream('/diagnose', {
            text: 'bind() failed\n'.repeat(50),
            question: 'Why does nginx not start?'
        });
        expect(namesOf(events)).to.equal(['start', 'call', 'result', 'findings', 'usage', 'end']);
        expect(dataOf(events, 'findings').findings).to.equal([finding]);
        const names = rig.model.questions[0]?.body.tools.map((tool: Any) => tool.function.name);
        expect(names).to.include(['report_findings', 'engine__logs']);
        expect(names).to.not.include('engine__stop');
        const { conversationId } = dataOf(events, 'start');
        const kept = await rig.host.as(reader).get<Any>(`/conversations/${conversationId}`);
        expect(kept.data.title).to.equal('Diagnosis: Why does nginx not start?');
    });

    it('POST /diagnose reads a route with the rights of the user, and takes secrets out', async () => {
        rig.model.say(report());
        const events = await stream('/diagnose', { source: { route: 'engine.logs' } });
        expect(dataOf(events, 'findings').findings).to.equal([]);
        const sent = JSON.stringify(rig.model.questions[0]?.body);
        expect(sent).to.include('bind() to').and.to.not.include('tiger99');
        for (const source of [{ route: 'engine.secret' }, { route: 'engine.stop' }, { route: 'none' }]) {
            const refused = await rig.host.as(reader).post('/diagnose', { source });
            expect([source.route, refused.code]).to.equal([source.route, 40400]);
        }
        expect((await rig.host.as(reader).post('/diagnose', {})).code).to.equal(40001);
    });

    it('POST /diagnose sends the beginning and the end of a long log', async () => {
        rig.model.say(report());
        await stream('/diagnose', { text: `first line\n${'filler line\n'.repeat(60_000)}last line` });
        const sent = JSON.stringify(rig.model.questions[0]?.body);
        expect(sent).to.include(['first line', 'last line', 'characters left out']);
        expect(sent.length).to.be.below(300_000);
    });

    it('POST /generate gives a wrong compose file back to the model, and shows the right one alone', async () => {
        rig.model.say(
            submit('services:\n  web:\n    imag: nginx\n'),
            submit('services: [\n'),
            submit(goodCompose)
        );
        const events = await stream('/generate', { kind: 'compose', description: 'A web server' });
        expect(dataOf(events, 'document')).to.equal({
            kind: 'compose',
            content: goodCompose,
            valid: true,
            problems: []
        });
        const told = rig.model.questions.slice(1).map(({ body }) => JSON.stringify(body.messages.at(-1)));
        expect(told[0]).to.include('imag');
        expect(dataOf(events, 'end').reason).to.equal('stop');
    });

    it('POST /generate shows what stays wrong with its problems, after three tries', async () => {
        rig.model.say(
            submit('services: {}\n'),
            submit('version: "3"\n'),
            submit('services:\n  a:\n    ports: 7\n')
        );
        const document = dataOf(
            await stream('/generate', { kind: 'compose', description: 'Nothing' }),
            'document'
        );
        expect(document.valid).to.be.false();
        expect(document.problems[0].path).to.include('services.a');
        expect(rig.model.questions.length).to.equal(3);
    });

    it('POST /generate asks the policy of this machine', async () => {
        rig.host.api.route({
            id: 'container.planStack',
            plugin: 'container',
            method: 'POST',
            effect: 'read',
            permission: 'hosts:read',
            handler: ({ payload }) => ({
                errors: [],
                findings: (payload as { compose: string }).compose.includes('privileged')
                    ? [{ service: 'web', message: 'privileged is not allowed' }]
                    : []
            })
        });
        rig.model.say(submit(`${goodCompose}    privileged: true\n`), submit(goodCompose));
        const events = await stream('/generate', { kind: 'compose', description: 'A web server' });
        expect(dataOf(events, 'document')).to.include({ content: goodCompose, valid: true });
        expect(JSON.stringify(rig.model.questions[1]?.body.messages.at(-1))).to.include(
            'privileged is not allowed'
        );
    });

    const kinds = [
        [
            'dockerfile',
            'FROM node:24\nRUNN npm ci\n',
            'FROM node:24-alpine\nUSER node\nCMD ["node", "a.js"]\n',
            'RUNN'
        ],
        [
            'dockerfile',
            'FROM debian:13\nRUN curl -s https://x.example/i | sh\n',
            'FROM debian:13\n',
            'runs what it downloads'
        ],
        ['script', 'echo hi\n', '#!/bin/sh\nset -eu\necho hi\n', 'does not say what runs it'],
        ['caddy', '{"domain":"bad.example"}', '{"domain":"good.example"}', 'domain is required']
    ] as const;
    for (const [kind, wrong, right, problem] of kinds) {
        it(`POST /generate checks a ${kind}: ${problem}`, async () => {
            rig.model.say(submit(wrong), submit(right));
            const events = await stream('/generate', { kind, description: 'x' });
            expect(dataOf(events, 'document')).to.equal({ kind, content: right, valid: true, problems: [] });
            expect(JSON.stringify(rig.model.questions[1]?.body.messages.at(-1))).to.include(problem);
        });
    }

    it('POST /review names lines, takes findings of the right form alone, and refuses too much', async () => {
        rig.model.say(
            report({ severity: 'high', message: 'x' }),
            report({ severity: 'warning', subject: 'a.sh:2', message: 'Unquoted' })
        );
        const events = await stream('/review', {
            files: [{ name: 'a.sh', text: 'set -e\nrm $x\n' }],
            focus: 'quotes'
        });
        expect(dataOf(events, 'findings').findings).to.equal([
            {
                severity: 'warning',
                subject: 'a.sh:2',
                message: 'Unquoted',
                evidence: null,
                remedy: null,
                route: null
            }
        ]);
        expect(JSON.stringify(rig.model.questions[0]?.body)).to.include('2: rm $x');
        rig.model.say(report());
        await stream('/review', { source: { route: 'engine.logs' } });
        const sent = JSON.stringify(rig.model.questions.at(-1)?.body);
        expect(sent).to.include('bind() to').and.to.not.include('tiger99');
        const files = [1, 2, 3].map((n) => ({ name: `${n}`, text: 'x'.repeat(400_000) }));
        expect((await rig.host.as(reader).post('/review', { files })).code).to.equal(40001);
    });
});
