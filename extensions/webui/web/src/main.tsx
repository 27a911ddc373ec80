/** The pages' entry: the words, then the login or the shell. */
import { QueryClientProvider } from '@tanstack/preact-query';
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { queries } from './api/queries.ts';
import { isLoggedIn, onChange } from './api/session/session.ts';
import { Conflicts } from './kit/dialogs/conflict.tsx';
import { Questions } from './kit/dialogs/questions.tsx';
import { Toasts } from './kit/dialogs/toast.tsx';
import { Login } from './pages/login/login.tsx';
import { SessionEnd } from './pages/login/session-end.tsx';
import { Shell } from './shell/shell.tsx';
import { loadWords } from './words/language.ts';

import './style.css';

function App() {
    const [isIn, setIn] = useState(isLoggedIn());
    useEffect(
        () =>
            onChange(() => {
                setIn(isLoggedIn());
                if (!isLoggedIn()) {
                    queries.clear();
                }
            }),
        []
    );
    return (
        <QueryClientProvider client={queries}>
            {isIn ? <Shell /> : <Login />}
            <Conflicts />
            <Questions />
            <SessionEnd />
            <Toasts />
        </QueryClientProvider>
    );
}

await loadWords();
const root = document.getElementById('root');
if (root !== null) {
    render(<App />, root);
}
