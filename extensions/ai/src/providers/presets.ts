/** Services and programs that answer for models, as far as their addresses are public. */
import { joi, type Value } from '@portico/sdk';

/** The shape of a preset. */
export const presetSchema = joi.object({
    id: joi
        .string()
        .required()
        .label('Preset')
        .meta({ ui: { column: false } }),
    title: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    type: joi
        .choice({ openai: 'Chat completions', anthropic: 'Anthropic messages' })
        .required()
        .label('Protocol')
        .meta({ ui: { column: 2 } }),
    baseUrl: joi
        .string()
        .required()
        .label('Address')
        .meta({ ui: { column: 3 } }),
    models: joi
        .array()
        .items(joi.string())
        .required()
        .label('Models')
        .meta({ ui: { column: 4 } }),
    needsKey: joi
        .boolean()
        .required()
        .label('Needs a key')
        .meta({ ui: { column: 5 } }),
    local: joi
        .boolean()
        .required()
        .label('On this machine')
        .meta({ ui: { column: 6 } })
});
/** A checked preset, which says how a known provider is reached. */
export type Preset = Value<typeof presetSchema>;

const remote = (id: string, title: string, baseUrl: string, ...models: string[]): Preset => ({
    id,
    title,
    type: 'openai',
    baseUrl,
    models,
    needsKey: true,
    local: false
});
const local = (id: string, title: string, port: number): Preset => ({
    id,
    title,
    type: 'openai',
    baseUrl: `http://127.0.0.1:${port}/v1`,
    models: [],
    needsKey: false,
    local: true
});

/** The presets; the models of local ones are what they have loaded. */
export const presets: readonly Preset[] = [
    {
        ...remote(
            'anthropic',
            'Anthropic',
            'https://api.anthropic.com/v1',
            'claude-sonnet-4-5',
            'claude-opus-4-1',
            'claude-haiku-4-5'
        ),
        type: 'anthropic'
    },
    remote('openai', 'OpenAI', 'https://api.openai.com/v1', 'gpt-5', 'gpt-5-mini', 'gpt-4.1'),
    remote(
        'google',
        'Google Gemini',
        'https://generativelanguage.googleapis.com/v1beta/openai',
        'gemini-2.5-pro',
        'gemini-2.5-flash'
    ),
    remote('mistral', 'Mistral', 'https://api.mistral.ai/v1', 'mistral-large-latest', 'codestral-latest'),
    remote('deepseek', 'DeepSeek', 'https://api.deepseek.com/v1', 'deepseek-chat', 'deepseek-reasoner'),
    remote('groq', 'Groq', 'https://api.groq.com/openai/v1', 'llama-3.3-70b-versatile'),
    remote('openrouter', 'OpenRouter', 'https://openrouter.ai/api/v1', 'anthropic/claude-sonnet-4.5'),
    remote(
        'together',
        'Together AI',
        'https://api.together.xyz/v1',
        'meta-llama/Llama-3.3-70B-Instruct-Turbo'
    ),
    remote('fireworks', 'Fireworks AI', 'https://api.fireworks.ai/inference/v1'),
    remote('cerebras', 'Cerebras', 'https://api.cerebras.ai/v1', 'llama-3.3-70b'),
    remote('xai', 'xAI', 'https://api.x.ai/v1', 'grok-4'),
    remote(
        'qwen',
        'Alibaba Qwen',
        'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
        'qwen-max',
        'qwen-plus'
    ),
    remote('moonshot', 'Moonshot Kimi', 'https://api.moonshot.ai/v1', 'kimi-k2-0905-preview'),
    remote('zhipu', 'Zhipu GLM', 'https://open.bigmodel.cn/api/paas/v4', 'glm-4.6'),
    local('ollama', 'Ollama', 11_434),
    local('lmstudio', 'LM Studio', 1_234),
    local('llamacpp', 'llama.cpp server', 8_080),
    local('vllm', 'vLLM', 8_000),
    local('sglang', 'SGLang', 30_000),
    local('jan', 'Jan', 1_337)
];
