/** Tests whether a provider does what the assistant needs. */
import { isFailure } from '@portico/sdk';

import type { Endpoint, Models, ModelTool } from './model.ts';
import type { ProviderTest } from './schema.ts';

type Check = ProviderTest['checks'][number];

const echo: ModelTool = {
    type: 'function',
    name: 'echo',
    description: 'Says a word',
    inputSchema: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] }
};

/** Asks for the models, for an answer, for a call of a function and for a vector, each on its own. */
export async function testProvider(
    models: Models,
    endpoint: Endpoint,
    signal: AbortSignal
): Promise<ProviderTest> {
    const checks = [
        await check('models', async () => {
            const ids = await models.list(endpoint, signal);
            return ids.includes(endpoint.model)
                ? `${ids.length} models, ${endpoint.model} among them`
                : `${ids.length} models; ${endpoint.model} is not among them`;
        }),
        await check('answer', async () => {
            const { text } = await ask(models, endpoint, 'Say the word ready.', signal);
            return text.slice(0, 200);
        }),
        await check('tools', async () => {
            const { calls } = await ask(models, endpoint, 'Call echo with the word ready.', signal, [echo]);
            if (calls === 0) {
                throw new Error('It called no function: the assistant could read nothing of the panel');
            }
            return 'It calls functions';
        }),
        ...(endpoint.embeddingModel === null
            ? []
            : [
                  await check('embeddings', async () => {
                      const { vectors } = await models.embed(endpoint, ['ready'], signal);
                      return `Vectors of ${vectors[0]?.length ?? 0} numbers`;
                  })
              ])
    ];
    return { ok: checks.every(({ ok }) => ok), checks };
}

async function ask(
    models: Models,
    endpoint: Endpoint,
    question: string,
    signal: AbortSignal,
    tools: readonly ModelTool[] = []
): Promise<{ readonly text: string; readonly calls: number }> {
    let text = '';
    let calls = 0;
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: question }] }];
    for await (const event of models.ask(endpoint, { prompt, tools, signal })) {
        text += event.type === 'text' ? event.delta : '';
        calls += event.type === 'call' ? 1 : 0;
    }
    return { text, calls };
}

async function check(name: Check['name'], work: () => Promise<string>): Promise<Check> {
    const began = performance.now();
    const done = (ok: boolean, message: string): Check => ({
        name,
        ok,
        ms: Math.round(performance.now() - began),
        message
    });
    try {
        return done(true, await work());
    } catch (error) {
        return done(false, isFailure(error) || error instanceof Error ? error.message : 'It failed');
    }
}
