"""The gateway's login in openapi.json. The gateway itself answers requests of the login, so no .proto
file describes them."""

IDENTITY = {
    "type": "object",
    "description": "The owner of a token.",
    "required": ["name", "role"],
    "properties": {
        "name": {"type": "string", "description": "Name in the token file"},
        "role": {"type": "string", "enum": ["reader", "user", "admin"]},
    },
    "example": {"name": "ada", "role": "admin"},
}
REQUEST = {
    "type": "object",
    "description": "A token. If it is missing, the header Authorization must have it.",
    "additionalProperties": False,
    "properties": {
        "token": {"type": "string", "description": "Token from the token file"},
        "max_age_s": {"type": "integer", "minimum": 0, "maximum": 2592000,
                      "description": "Seconds until the browser deletes the cookie; 0: when the browser ends"},
    },
    "example": {"token": "0123456789abcdef"},
}
SCHEMAS = {"Identity": IDENTITY, "LoginRequest": REQUEST}


def operation(name, summary, description, answer, error, request=None):
    out = {
        "operationId": f"Gateway{name}",
        "tags": ["Gateway"],
        "summary": summary,
        "description": f"{summary}. {description}",
        "responses": {
            "200": {"description": "Done", "content": {"application/json": {"schema": answer}}},
            "4XX": error,
            "5XX": error,
        },
    }
    if request:
        out["requestBody"] = {"required": False, "content": {"application/json": {"schema": request}}}
    return out


def paths(error):
    identity, request = ({"$ref": f"#/components/schemas/{name}"} for name in SCHEMAS)
    return {
        "/v1/login": {
            "get": operation("Identity", "Returns the owner of the token in use",
                             "The token comes from the header Authorization or the login cookie.",
                             identity, error),
            "post": operation("Login", "Sets a cookie with the token in a browser",
                              "The cookie is HttpOnly, SameSite=Strict, and Secure with HTTPS. It replaces the header"
                              " Authorization in requests from pages of this server.", identity, error, request),
        },
        "/v1/logout": {
            "post": operation("Logout", "Deletes the cookie", "The token stays valid.", {"type": "object"}, error),
        },
    }
