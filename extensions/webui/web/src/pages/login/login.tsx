/** The login. */
import { LanguageButton } from '../../kit/language.tsx';
import { LoginForm } from './login-form.tsx';

/** The screen of a user who is not logged in. */
export function Login() {
    return (
        <main class="login">
            <section>
                <h1>
                    <img src="/favicon.svg" alt="" width="32" height="32" /> Portico
                </h1>
                <LoginForm />
                <LanguageButton />
            </section>
        </main>
    );
}
