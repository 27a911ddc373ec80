/** The shapes of `/api/auth/oauth` on the wire. Parameters of the protocol have its names. */
import { joi } from '@portico/sdk';

const url = joi.string().max(2048);
const clientId = joi.string().min(1).max(2048);
const name = joi.string().min(1).max(100);

/** Path parameter of a client. */
export const clientParams = joi.object({ clientId: joi.string().max(100).required() });

/** The body that registers a client. */
export const clientRequest = joi.object({
    name: name.required().description('What users read when the client asks for authorization'),
    redirectUris: joi
        .array()
        .items(url)
        .min(1)
        .max(20)
        .unique()
        .required()
        .description('https, http on this machine (any port), or a scheme of an app')
});

/** A registered client as the API shows it. */
export const client = joi.object({
    clientId: clientId.required(),
    name: joi.string().required(),
    redirectUris: joi.array().items(joi.string()).required(),
    selfRegistered: joi
        .boolean()
        .required()
        .description("It registered itself, and every user may authorize it; else it is one's own"),
    createdAt: joi.string().isoDate().required(),
    version: joi.number().integer().required()
});

const parameters = {
    response_type: joi.string().max(100).description('`code`'),
    client_id: clientId
        .required()
        .description('Of a registered client, or the https URL of its metadata document'),
    redirect_uri: url.required().description('Exactly one of the client; a loopback address with any port'),
    scope: joi.string().max(16_384).allow('').description('Permissions, with spaces between them'),
    state: joi.string().max(4096).allow(''),
    code_challenge: joi.string().max(256),
    code_challenge_method: joi.string().max(16).description('`S256`'),
    resource: url.description('Address of the protected resource')
};

/** An authorization request. What is missing or wrong is told to the client, so most is checked later. */
export const authorizationRequest = joi.object(parameters);

/** The body of an authorization. */
export const authorization = joi.object({
    ...parameters,
    deny: joi.boolean().description('The user refuses: the client is told `access_denied`')
});

/** What a user agrees to. */
export const preview = joi.object({
    client: joi.object({ id: clientId.required(), name: joi.string().required() }).required(),
    redirectUri: joi.string().required(),
    resource: joi.object({ path: joi.string().required(), title: joi.string().required() }).required(),
    permissions: joi
        .array()
        .items(
            joi.object({
                name: joi.string().required(),
                title: joi.string().required(),
                dangerous: joi.boolean().required(),
                allowed: joi.boolean().required().description('One has it, and so can give it')
            })
        )
        .required()
});

/** Where the browser goes. */
export const redirect = joi.object({
    redirect: joi.secret().required().description('Holds the code')
});
